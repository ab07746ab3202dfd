#ifndef PARASOL_LOOP_PROGRAM_H_
#define PARASOL_LOOP_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/metrics.h"
#include "base/process.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "loop/strategy.h"

namespace parasol {
class ProgramStatus;
class ProgramStatusServer;
}  // namespace parasol

namespace parasol::loop {

// A process of a program with a training loop of its own: its flags, its place
// in a cluster (TF_CONFIG, or --cluster_spec and --task), SIGTERM, and its exit
// code, all as the `worker` binary has them.
//
//   int main(int argc, char** argv) {
//     Program program(argc, argv, "Trains a GAN.");
//     return program.Run([](Strategy& strategy) -> absl::Status { … });
//   }
//
// --strategy, --devices, --threads and --checkpoint_dir choose how it runs, and
// --status_address and --metrics_address where it says how it goes; flags of
// its own are ABSL_FLAGs. Start the program on each worker, and on the
// chief of a cluster with ps.
class Program {
 public:
  // Parses the command line: first thing in main(). A wrong flag or cluster
  // ends the process with a line and exit code 2.
  Program(int argc, char** argv, absl::string_view usage);
  ~Program();

  // The arguments that are not flags.
  const std::vector<std::string>& arguments() const { return arguments_; }

  // Makes the strategy that the flags and the cluster say, opens its scope, and
  // calls `body`. Ends the strategy with the result, and returns the exit code:
  // what main() returns. An exception is an error, too, and an error is one
  // line on stderr.
  int Run(const std::function<absl::Status(Strategy& strategy)>& body);

 private:
  absl::StatusOr<std::unique_ptr<Strategy>> CreateStrategy();
  // Returns true for the chief of a cluster with ps.
  bool LeadsPs() const;
  // Has worker 0, which answers at the port of this address, told how this
  // process goes.
  absl::Status TellFirst(const std::string& address);
  absl::Status StartServers();
  absl::Status RunBody(
      const std::function<absl::Status(Strategy& strategy)>& body);

  std::vector<std::string> arguments_;
  TaskConfig config_;
  MetricsRegistry metrics_;
  std::unique_ptr<ProgramStatus> status_;
  // Both show `status_`.
  std::unique_ptr<MetricsServer> metrics_server_;
  std::unique_ptr<ProgramStatusServer> status_server_;
  std::unique_ptr<TerminationSignal> signal_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_PROGRAM_H_
