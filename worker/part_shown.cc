#include "worker/part_shown.h"

namespace parasol {

std::optional<LoneStatus::Doing> DoingOf(const TrainingReporter& reporter) {
  const auto part = reporter.Now();
  if (!part) return std::nullopt;
  const absl::Time since = part->second;
  switch (part->first) {
    case StepPart::kInput:
      return LoneStatus::Doing{wire::Finding::INPUT, "waiting for a batch",
                               since};
    case StepPart::kPull:
      return LoneStatus::Doing{wire::Finding::LINK, "waiting for values",
                               since};
    case StepPart::kPush:
      return LoneStatus::Doing{wire::Finding::LINK,
                               "waiting for sums of gradients", since};
    case StepPart::kWait:
      return LoneStatus::Doing{wire::Finding::WORKER,
                               "waiting for other processes", since};
    case StepPart::kCompute:
      break;
  }
  return LoneStatus::Doing{wire::Finding::COMPUTE, "computing one step", since};
}

}  // namespace parasol
