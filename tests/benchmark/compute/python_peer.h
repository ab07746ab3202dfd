#ifndef PARASOL_TESTS_BENCHMARK_COMPUTE_PYTHON_PEER_H_
#define PARASOL_TESTS_BENCHMARK_COMPUTE_PYTHON_PEER_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/subprocess.h"

namespace parasol {

// A Python process that trains the same models with PyTorch when it is told to,
// and is idle otherwise. Not thread-safe.
class PythonPeer {
 public:
  struct Options {
    std::string python;  // the interpreter's path
    std::string script;
    int threads = 1;
    std::string device;     // "cpu", "cuda:0"
    std::string precision;  // "float32", "tf32", or "bfloat16" for autocast
    std::string variants;   // a list with commas; empty: all
    bool cpu_time = false;  // true: measures CPU time, not elapsed time
  };

  // Starts the process, and waits until it can take orders.
  //   NotFound     no such interpreter or script.
  //   Unavailable  the process ended: the interpreter has no PyTorch, or the
  //                device does not exist. Its standard error has the reason.
  static absl::StatusOr<std::unique_ptr<PythonPeer>> Start(
      const Options& options);
  ~PythonPeer();

  // Returns PyTorch's version.
  const std::string& version() const { return version_; }

  // Returns the median time of a step of `workload`, measured for `time`.
  absl::StatusOr<absl::Duration> MedianStep(absl::string_view workload,
                                            absl::Duration time);

 private:
  explicit PythonPeer(std::string orders_path)
      : orders_path_(std::move(orders_path)) {}

  absl::StatusOr<std::string> ReadLine();

  const std::string orders_path_;  // a FIFO
  std::unique_ptr<Subprocess> process_;
  std::FILE* orders_ = nullptr;
  std::string version_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COMPUTE_PYTHON_PEER_H_
