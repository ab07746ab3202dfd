#include "cluster/check/step_size.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol {

int64_t ExamplesOfStep(const job::Job& job) {
  const int64_t replicas = std::max<int64_t>(
      1, job.parameter_server().synchronous().total_replicas());
  return job.train().batch_size() * replicas;
}

std::string LargeStepWarning(const job::Job& job, int64_t examples) {
  const int64_t step = ExamplesOfStep(job);
  if (step <= examples) return "";
  if (job.parameter_server().has_local_steps()) {
    return absl::StrCat("parameter_server.local_steps: an exchange has ", step,
                        " examples, more than all ", examples,
                        " training examples: an epoch is one exchange");
  }
  return absl::StrCat("train.batch_size: a step has ", step,
                      " examples, more than all ", examples,
                      " training examples: an epoch is one step");
}

}  // namespace parasol
