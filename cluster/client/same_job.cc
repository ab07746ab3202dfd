#include "cluster/client/same_job.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cluster/job/changed_fields.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// Workers use an optimizer's clipping alone; the rest is the ps's.
void KeepClipping(job::Optimizer& optimizer) {
  job::Optimizer kept;
  if (optimizer.has_clipvalue()) kept.set_clipvalue(optimizer.clipvalue());
  if (optimizer.has_clipnorm()) kept.set_clipnorm(optimizer.clipnorm());
  if (optimizer.has_global_clipnorm()) {
    kept.set_global_clipnorm(optimizer.global_clipnorm());
  }
  optimizer = kept;
}

// Variables whose optimizers are equal have one common norm.
bool HasCommonNorms(const job::Job& job) {
  const auto& layers = job.model().layer();
  return job.optimizer().has_global_clipnorm() ||
         std::any_of(layers.begin(), layers.end(), [](const job::Layer& layer) {
           return layer.optimizer().has_global_clipnorm();
         });
}

job::Job WhatAWorkerGoesBy(job::Job job) {
  job.clear_name();
  job.clear_end();
  job.clear_checkpoint();
  job.clear_eval();
  job.clear_evaluation();
  job.mutable_summary()->clear_every_seconds();
  job.clear_tensorboard();
  job.clear_tensorboard_histograms();
  job.mutable_model()->clear_metric();
  for (job::Output& output : *job.mutable_model()->mutable_output()) {
    output.clear_metric();
  }
  // A worker that has the variables goes by all rules.
  if (job.strategy().has_multi_worker_mirrored() ||
      job.strategy().has_hybrid()) {
    return job;
  }
  job.clear_warm_start();
  const bool has_common_norms = HasCommonNorms(job);
  KeepClipping(*job.mutable_optimizer());
  for (job::Layer& layer : *job.mutable_model()->mutable_layer()) {
    layer.clear_learning_rate_multiplier();
    if (!layer.has_optimizer() || has_common_norms) continue;
    KeepClipping(*layer.mutable_optimizer());
  }
  for (job::SparseTable& table : *job.mutable_model()->mutable_sparse_table()) {
    table.clear_initializer();
    table.clear_learning_rate_multiplier();
    if (table.has_optimizer()) KeepClipping(*table.mutable_optimizer());
  }
  return job;
}

job::Job WhatAnEvaluatorGoesBy(const job::Job& job) {
  job::Job kept;
  *kept.mutable_model() = job.model();
  if (job.has_eval()) *kept.mutable_eval() = job.eval();
  return kept;
}

absl::Status StartAgain(const job::Job& joined, const job::Job& now) {
  const std::vector<std::string> changed = ChangedFields(joined, now);
  if (changed.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the chief has restarted with another job (",
                   absl::StrJoin(changed, "; "),
                   "): this task has to start "
                   "again"));
}

}  // namespace

absl::Status CheckWorkerGoesOn(const wire::RegisterResponse& joined,
                               const wire::RegisterResponse& now) {
  RETURN_IF_ERROR(CheckVariables(joined, now.run_id(), now.layout()));
  return StartAgain(WhatAWorkerGoesBy(joined.job()),
                    WhatAWorkerGoesBy(now.job()));
}

absl::Status CheckEvaluatorGoesOn(const wire::RegisterResponse& joined,
                                  const wire::RegisterResponse& now) {
  return StartAgain(WhatAnEvaluatorGoesBy(joined.job()),
                    WhatAnEvaluatorGoesBy(now.job()));
}

absl::Status CheckVariables(const wire::RegisterResponse& joined,
                            const std::string& run_id, uint64_t layout) {
  if (!run_id.empty() && run_id != joined.run_id()) {
    return absl::UnavailableError(
        absl::StrCat("the variables were initialised anew, as run ", run_id,
                     ", while this worker trained run ", joined.run_id(),
                     ": it has to start again"));
  }
  if (layout != 0 && layout != joined.layout()) {
    return absl::UnavailableError(
        "the chief has placed the variables in another way while this worker "
        "trained: it has to start again");
  }
  return absl::OkStatus();
}

}  // namespace parasol
