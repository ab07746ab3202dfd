#include "cluster/job/durability.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr char kDurabilityField[] = "parameter_server.durability";

}  // namespace

bool KeepsJournals(const job::Job& job) {
  switch (job.parameter_server().durability()) {
    case job::ParameterServerStrategy::CHECKPOINT:
    case job::ParameterServerStrategy::REPLICATE:
      return false;
    case job::ParameterServerStrategy::JOURNAL:
    case job::ParameterServerStrategy::JOURNAL_SYNC:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL_SYNC:
      return true;
  }
  return false;
}

bool Replicates(const job::Job& job) {
  switch (job.parameter_server().durability()) {
    case job::ParameterServerStrategy::CHECKPOINT:
    case job::ParameterServerStrategy::JOURNAL:
    case job::ParameterServerStrategy::JOURNAL_SYNC:
      return false;
    case job::ParameterServerStrategy::REPLICATE:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL_SYNC:
      return true;
  }
  return false;
}

absl::Status CheckDurability(const job::Job& job, int num_ps) {
  if (!Replicates(job)) return absl::OkStatus();
  if (num_ps > 1) return absl::OkStatus();
  const std::string name = job::ParameterServerStrategy::Durability_Name(
      job.parameter_server().durability());
  return absl::InvalidArgumentError(
      absl::StrCat(kDurabilityField, ": ", name,
                   ": each ps has its standby on another one, "
                   "and the cluster has ",
                   num_ps, "; add a ps, or choose JOURNAL"));
}

}  // namespace parasol
