#include "cluster/job/task/elastic_workers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {
namespace {

absl::Status Against(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("--elastic_workers: ", what));
}

}  // namespace

absl::Status CheckElasticWorkers(const job::Job& job) {
  if (job.strategy().has_multi_worker_mirrored() ||
      job.strategy().has_hybrid()) {
    return Against(
        "under multi_worker_mirrored and hybrid the workers have the "
        "variables; use ps");
  }
  if (!job.parameter_server().has_synchronous()) {
    if (job.train().auto_shard() != job::Dataset::FILE) return absl::OkStatus();
    return Against(
        "train.auto_shard: FILE gives each listed worker files, which others "
        "train when they have no more of their own; leave it out");
  }
  const job::Synchronous& mode = job.parameter_server().synchronous();
  if (mode.lost_worker() == job::Synchronous::FAIL) {
    return Against("synchronous.lost_worker: FAIL ends the job with a worker");
  }
  if (!mode.has_replicas_to_aggregate()) {
    return Against(
        "set synchronous.replicas_to_aggregate: it would be the number of "
        "listed workers, whether they are there or not");
  }
  return absl::OkStatus();
}

}  // namespace parasol
