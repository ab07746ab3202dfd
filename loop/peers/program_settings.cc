#include "loop/peers/program_settings.h"

#include "absl/strings/str_cat.h"
#include "cluster/job/defaults.h"
#include "loop/peers/program_status.h"

namespace parasol {

MetricsRegistry& MetricsOf(const ProgramSettings& settings,
                           MetricsRegistry& own) {
  return settings.metrics == nullptr ? own : *settings.metrics;
}

void ShowChief(const ProgramSettings& settings, const ProgramChief* chief) {
  if (settings.status != nullptr) settings.status->Show(chief);
}

LoneStatus* ShownBy(const ProgramSettings& settings) {
  return settings.status == nullptr ? nullptr : &settings.status->shown();
}

const job::LocalSteps* LocalStepsOf(const ProgramSettings& settings) {
  return settings.local_steps ? &*settings.local_steps : nullptr;
}

job::Job JobOfProgram(job::Job job, const ProgramSettings& settings,
                      int64_t iterations) {
  *job.mutable_checkpoint() = settings.checkpoint;
  job.mutable_checkpoint()->set_directory(settings.checkpoint_directory);
  *job.mutable_summary() = settings.summary;
  job.set_tensorboard(settings.tensorboard);
  job.mutable_end()->set_steps(iterations);
  FillDefaults(job);
  return job;
}

absl::Status CheckFollows(const Iteration& iteration, int64_t step) {
  if (iteration.step == step + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("iteration ", iteration.step, " is committed after ", step,
                   ": commit each once, in order"));
}

}  // namespace parasol
