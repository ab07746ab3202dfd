#ifndef PARASOL_WORKER_CHIEF_BESIDE_H_
#define PARASOL_WORKER_CHIEF_BESIDE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/subprocess.h"

namespace parasol {

// The chief process of a cluster whose TF_CONFIG lists no chief. Worker 0 does
// the chief's duties: it runs the `chief` binary beside itself, at worker 0's
// address. The child reads the same TF_CONFIG and never outlives the thread
// that started it. The two are one task: a chief process that is lost ends
// worker 0 as well, with an exit code that asks for a restart. Thread-safe.
class ChiefBeside {
 public:
  struct Options {
    // Path of the chief binary. Empty: the one that is installed next to this
    // worker's binary.
    std::string binary;
    // Flags that are handed on to the chief unchanged: --job, --set,
    // --checkpoint_dir, …
    std::vector<std::string> arguments;
  };

  // Starts the chief process.
  //   NotFound  there is no such binary; the message names it.
  static absl::StatusOr<std::unique_ptr<ChiefBeside>> Start(
      const Options& options);

  // Blocks until the chief process has ended, and returns the status that
  // corresponds to its exit code.
  //   DeadlineExceeded  it still runs after `limit`.
  absl::Status Wait(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // Sends SIGTERM: the chief writes a checkpoint and ends.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit ChiefBeside(std::unique_ptr<Subprocess> process)
      : process_(std::move(process)) {}

  absl::Mutex mu_;
  const std::unique_ptr<Subprocess> process_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_CHIEF_BESIDE_H_
