#ifndef PARASOL_LOOP_PEERS_PROGRAM_SETTINGS_H_
#define PARASOL_LOOP_PEERS_PROGRAM_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/metrics.h"
#include "loop/peers/peers.h"
#include "proto/job.pb.h"

namespace parasol {

class LoneStatus;
class ProgramChief;
class ProgramStatus;

// How the processes of a program keep its values, as its flags say.
struct ProgramSettings {
  // Empty: there are no checkpoints.
  std::string checkpoint_directory = {};
  // What is not set has the job's defaults.
  job::CheckpointPolicy checkpoint = {};
  job::SummaryPolicy summary = {};
  bool tensorboard = true;
  // Local steps, as ParseLocalSteps() returns them; nullopt: each iteration is
  // exchanged.
  std::optional<job::LocalSteps> local_steps = {};
  // Time for which the first and the last checkpoint are tried again, and a
  // directory that is full at the start.
  absl::Duration checkpoint_timeout = absl::Minutes(10);
  // The registry of the process's metrics; null: they are not shown.
  MetricsRegistry* metrics = nullptr;
  // Address of the metrics that operators are told; empty: none.
  std::string metrics_address = {};
  // Told which chief there is, and its page shows the job of a cluster with ps;
  // null: nobody is. Outlives the peers.
  ProgramStatus* status = nullptr;
};

// Tells the settings' ProgramStatus, if there is one, which chief there is.
void ShowChief(const ProgramSettings& settings, const ProgramChief* chief);

// Returns what shows this process to those who look on; null: nothing does.
LoneStatus* ShownBy(const ProgramSettings& settings);

// Returns the settings' local steps; null: there are none.
const job::LocalSteps* LocalStepsOf(const ProgramSettings& settings);

// Returns the registry of the settings, or `own`.
MetricsRegistry& MetricsOf(const ProgramSettings& settings,
                           MetricsRegistry& own);

// Returns the job that stands for a program in its checkpoints: its store's
// with these settings and all defaults, and with an end after `iterations`;
// kEndless: the program ends by itself.
job::Job JobOfProgram(job::Job job, const ProgramSettings& settings,
                      int64_t iterations = kEndless);

// Returns InvalidArgument unless the iteration is the next one after `step`.
absl::Status CheckFollows(const Iteration& iteration, int64_t step);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PROGRAM_SETTINGS_H_
