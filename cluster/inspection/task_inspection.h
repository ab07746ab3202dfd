#ifndef PARASOL_CLUSTER_INSPECTION_TASK_INSPECTION_H_
#define PARASOL_CLUSTER_INSPECTION_TASK_INSPECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/inspection/clock_offset.h"
#include "cluster/inspection/trace_recorder.h"
#include "proto/chief.pb.h"

namespace parasol {

// A task's part in inspections: it begins what an answer to a heartbeat asks
// for, and later heartbeats bring what it has to show, in pieces, until the
// chief has it. Anybody may use the recorder; one thread calls the rest, and
// takes the stacks of the others.
class TaskInspection {
 public:
  // Bytes of the spans of one heartbeat, about, and most bytes of stacks.
  static constexpr size_t kPartBytes = 256 << 10;
  // Time that a thread has to show its stack.
  static constexpr absl::Duration kStackLimit = absl::Milliseconds(100);

  explicit TaskInspection(Clock& clock) : clock_(clock) {}

  TraceRecorder& recorder() { return recorder_; }

  // Have the stack of the calling thread shown first, or of the thread that
  // `number` returns, as gettid() does (0: of none). The latter is called
  // before the first heartbeat.
  void ShowThisThreadFirst();
  void ShowFirst(std::function<int()> number) { number_ = std::move(number); }

  // Takes the chief's answer to a heartbeat of `sent` that came at `received`.
  void Heard(const wire::HeartbeatResponse& answer, absl::Time sent,
             absl::Time received);
  // Writes what the task has to show into its next heartbeat.
  void Report(wire::HeartbeatRequest& request);
  // Returns true if there is more to show: the next heartbeat is due soon.
  bool HasMore() const { return has_more_; }

 private:
  // An inspection, and the things to show.
  struct Shown {
    wire::Inspection asked;
    bool is_over = false;  // `recorded` or `stacks` is there
    TraceRecorder::Recorded recorded = {};
    std::string stacks = {};
    int64_t known_spans = 0;  // the chief has
  };

  void Begin(const wire::Inspection& asked);
  void WriteSpans(wire::InspectionPart& part) const;

  Clock& clock_;
  TraceRecorder recorder_;
  std::atomic<int> first_ = 0;
  std::function<int()> number_ = nullptr;
  ClockOffset chief_clock_;
  std::optional<Shown> shown_;
  bool has_more_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_INSPECTION_TASK_INSPECTION_H_
