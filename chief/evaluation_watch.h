#ifndef PARASOL_CHIEF_EVALUATION_WATCH_H_
#define PARASOL_CHIEF_EVALUATION_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/run_history.h"

namespace parasol {

// Reads the evaluations of a run as they are appended to the checkpoint
// directory, on a thread of its own: the disk may not answer.
class EvaluationWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Milliseconds(500);
  // Time between two looks at the file while a job may wait for each result.
  static constexpr absl::Duration kAwaitedInterval = absl::Milliseconds(50);
  // Times for a file in a store, where each look is paid for.
  static constexpr absl::Duration kIntervalInStore = absl::Seconds(5);
  static constexpr absl::Duration kAwaitedIntervalInStore = absl::Seconds(1);

  struct Options {
    std::string checkpoint_directory;
    std::string run_id;
    // History of the run: evaluations of other checkpoints count for nothing.
    RunHistory history;
    // Time between two looks at the file.
    absl::Duration interval = kInterval;
    // Called by one thread at a time with all evaluations that there are, in
    // ascending order of their steps, whenever the file has changed.
    std::function<void(const std::vector<Evaluation>&)> on_change;
  };

  // Begins to watch. `clock` must outlive this object.
  EvaluationWatch(Options options, Clock& clock);
  ~EvaluationWatch() { Stop(); }

  // Ends the thread; a look that has begun is finished first. May be called
  // twice, by one thread.
  void Stop();

  // Looks at the file once, and calls on_change if its size is another one than
  // at the last look. May be called by any thread: for decisions that must not
  // be half a second late. Does nothing after Stop().
  void Look() ABSL_LOCKS_EXCLUDED(look_mu_);

 private:
  void Run();

  const Options options_;
  Clock& clock_;
  // Held during a look.
  absl::Mutex look_mu_;
  std::optional<uint64_t> size_ ABSL_GUARDED_BY(look_mu_);
  bool has_stopped_ ABSL_GUARDED_BY(look_mu_) = false;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_EVALUATION_WATCH_H_
