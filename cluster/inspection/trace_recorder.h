#ifndef PARASOL_CLUSTER_INSPECTION_TRACE_RECORDER_H_
#define PARASOL_CLUSTER_INSPECTION_TRACE_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace parasol {

// Records what the threads of a task do, while a trace is asked for. Otherwise
// it costs those who ask is_on() one relaxed load. Thread-safe.
class TraceRecorder {
 public:
  // Spans that one trace keeps; the rest are counted.
  static constexpr size_t kMaxSpans = 16384;

  // A thing that was done for some time.
  struct Span {
    const char* name = "";  // a literal
    // Name of the thread, the stream or the device.
    std::string track;
    absl::Time begin;
    absl::Time end;
    std::optional<int64_t> step = std::nullopt;
    int64_t bytes = 0;
  };

  // The time of a trace: from `begin` on, for `steps` whole steps, and until
  // `end` at most.
  struct Limits {
    absl::Time begin;
    absl::Time end;
    int64_t steps = 0;
  };

  struct Recorded {
    std::vector<Span> spans;
    int64_t dropped = 0;
  };

  // Begins a trace, and forgets the one before.
  void Start(const Limits& limits) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true while spans are wanted.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }

  // Keeps a span that is over, if it is of the trace's time.
  void Add(Span span) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that the task has ended a step at `now`. The steps of a trace begin
  // with the end of the first one.
  void EndStep(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the trace has all its steps, or its time is over.
  bool IsOver(absl::Time now) const ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the trace and returns what it has.
  Recorded Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::atomic<bool> is_on_ = false;
  mutable absl::Mutex mu_;
  Limits limits_ ABSL_GUARDED_BY(mu_);
  // Ends of steps that are awaited, the one with which the first begins too.
  int64_t ends_left_ ABSL_GUARDED_BY(mu_) = 0;
  Recorded recorded_ ABSL_GUARDED_BY(mu_);
};

// Returns a track's name of the thread that calls it: "thread 4242".
const std::string& TrackOfThread();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_INSPECTION_TRACE_RECORDER_H_
