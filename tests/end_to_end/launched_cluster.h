#ifndef PARASOL_TESTS_END_TO_END_LAUNCHED_CLUSTER_H_
#define PARASOL_TESTS_END_TO_END_LAUNCHED_CLUSTER_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/subprocess.h"
#include "proto/chief.pb.h"

namespace parasol {

// Returns the path of a binary that Bazel built; `relative` is like "ps/ps".
std::string BinaryPath(const std::string& relative);

// Returns the directory of small drawn digits in MNIST's format, made once per
// test process.
std::string DigitsDirectory();

// Returns the text of a job file for these digits: an MLP that learns them in
// some hundred steps.
std::string DigitsJob();

// Polls until `condition` holds.
//   DeadlineExceeded  it did not hold within `limit`; the message names `what`.
absl::Status WaitUntil(const std::string& what,
                       const std::function<bool()>& condition,
                       absl::Duration limit = absl::Minutes(3));

// A whole cluster of real processes, run by the launcher as a user runs it.
class LaunchedCluster {
 public:
  struct Options {
    int num_ps = 2;
    int num_workers = 2;
    std::string job = DigitsJob();
    std::string data_dir = DigitsDirectory();
    std::string checkpoint_dir = "";  // default: a fresh one
    std::vector<std::string> overrides = {};
    // Other flags of the launcher.
    std::vector<std::string> flags = {};
  };
  static absl::StatusOr<std::unique_ptr<LaunchedCluster>> Start(
      Options options);

  const std::string& checkpoint_dir() const { return checkpoint_dir_; }
  // Returns what a task, like "ps/0", has logged so far.
  std::string LogOf(const std::string& task) const;
  // Returns what the launcher has written to stderr so far.
  std::string Progress() const;

  // Returns the launcher's children: process ids by task name, like "ps/0".
  std::map<std::string, pid_t> Tasks() const;
  // Sends `signal` (SIGKILL, SIGSTOP, …) to a task, which must exist. After
  // SIGSTOP it returns when all threads of the task stand still.
  absl::Status Signal(const std::string& task, int signal);
  // Sends `signal` to the launcher.
  void SignalLauncher(int signal) { launcher_->Signal(signal); }

  // Returns the status that the chief reports; an error while the chief can't
  // be reached.
  absl::StatusOr<wire::JobStatus> Status() const;
  absl::Status AwaitStep(int64_t step);

  struct Result {
    int exit_code = 0;
    std::string json;      // the last line of stdout
    std::string progress;  // all of stderr
  };
  // Blocks until the launcher has ended, and returns its outputs.
  absl::StatusOr<Result> Wait(absl::Duration limit = absl::Minutes(3));

 private:
  LaunchedCluster() = default;

  std::string checkpoint_dir_;
  std::string output_;
  std::string progress_;
  std::string log_dir_;
  std::unique_ptr<Subprocess> launcher_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_END_TO_END_LAUNCHED_CLUSTER_H_
