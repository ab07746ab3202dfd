// SmallProgram as a process: what the test of processes kills.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/role_flags.h"
#include "loop/peers/peers_of.h"
#include "loop/peers/testing/small_program.h"

ABSL_FLAG(std::string, checkpoint_dir, "", "Directory of checkpoints.");
ABSL_FLAG(int64_t, iterations, 10, "Number of iterations.");
ABSL_FLAG(
    int64_t, hold_at, -1,
    "Iteration in which the process stays while --hold_file is there; -1: "
    "none.");
ABSL_FLAG(std::string, hold_file, "", "Path of a file; see --hold_at.");

namespace parasol {
namespace {

absl::Status Run(const TaskConfig& config, TerminationSignal& signal) {
  constexpr int kReplicas = 2;
  ProcessSettings settings;
  settings.replicas = kReplicas;
  settings.program.checkpoint_directory = absl::GetFlag(FLAGS_checkpoint_dir);
  settings.program.checkpoint.set_every_steps(4);
  ASSIGN_OR_RETURN(const std::unique_ptr<Peers> peers,
                   PeersOf(config, settings));
  signal.OnSignal([&peers] { peers->Stop(); });
  SmallProgram::Options options = {
      .first_replica = peers->rank() * kReplicas,
      .replicas = kReplicas,
      .all_replicas = peers->num_processes() * kReplicas,
      .iterations = absl::GetFlag(FLAGS_iterations)};
  options.before_commit = [](int64_t step) {
    std::printf("step %d\n", static_cast<int>(step));
    std::fflush(stdout);
    while (step == absl::GetFlag(FLAGS_hold_at) &&
           std::filesystem::exists(absl::GetFlag(FLAGS_hold_file))) {
      Clock::Real().Pause(absl::Milliseconds(20));
    }
    return absl::OkStatus();
  };
  SmallProgram program(options);
  const absl::Status result = program.Run(*peers);
  signal.Disarm();
  RETURN_IF_ERROR(result);
  std::printf("began at %d, values", static_cast<int>(program.began_at()));
  for (const float value : program.Values()) std::printf(" %.9g", value);
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  parasol::ParseCommandLine(argc, argv, "A program for a test.");
  const parasol::TaskConfig config =
      parasol::TaskConfigOrExit(parasol::Role::kWorker);
  parasol::TerminationSignal signal;
  return parasol::ExitWith(parasol::Run(config, signal));
}
