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

// The chief of a cluster that lists none: worker 0 does the chief's duties, by
// running the `chief` binary beside itself, at worker 0's address. The child
// reads the same TF_CONFIG, and never outlives the thread that started it. A
// chief that is lost takes worker 0 with it, with an exit code that asks for a
// restart: they are one task. Thread-safe.
class ChiefBeside {
 public:
  struct Options {
    // The binary; empty: the one that is installed next to this worker's.
    std::string binary;
    // Handed on as they are: --job, --set, --checkpoint_dir, …
    std::vector<std::string> arguments;
  };

  //   NotFound  there is no such binary: names it.
  static absl::StatusOr<std::unique_ptr<ChiefBeside>> Start(
      const Options& options);

  // How the chief ended, once it has; as the status whose exit code it was.
  //   DeadlineExceeded  it still runs after `limit`.
  absl::Status Wait(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // SIGTERM: it checkpoints and ends.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit ChiefBeside(std::unique_ptr<Subprocess> process)
      : process_(std::move(process)) {}

  absl::Mutex mu_;
  const std::unique_ptr<Subprocess> process_ ABSL_PT_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_CHIEF_BESIDE_H_
