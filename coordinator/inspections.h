#ifndef PARASOL_COORDINATOR_INSPECTIONS_H_
#define PARASOL_COORDINATOR_INSPECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace parasol {

// The inspections that somebody asks for, one at a time: asks the tasks, and
// keeps what they show. An inspection ends when all of its tasks have shown
// all, or have had the time; what came is kept for a while, until another one
// begins. What is out of bounds is cut, or left out and counted. Pure.
class Inspections {
 public:
  // Time until tasks that are asked for a trace begin it together: all have
  // had a heartbeat by then.
  static constexpr absl::Duration kLead = absl::Seconds(2);
  static constexpr absl::Duration kMaxLimit = absl::Minutes(1);
  // Time that tasks have to send what they have.
  static constexpr absl::Duration kSendLimit = absl::Seconds(20);
  // Time for which it is kept behind that.
  static constexpr absl::Duration kKept = absl::Minutes(5);
  static constexpr int64_t kMaxSteps = 100'000;
  // Spans of a task, and of all together: each task may have an equal share,
  // but 256 at least.
  static constexpr int64_t kMaxSpans = 16384;
  static constexpr int64_t kMaxSpansOfAll = 1 << 19;
  // Bytes of a task's stacks, and of all together: as with spans, but 4 KiB at
  // least.
  static constexpr size_t kMaxStackBytes = 256 << 10;
  static constexpr size_t kMaxStackBytesOfAll = 16 << 20;

  // Answers an Inspect of proto/chief.proto, given the tasks that are there.
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request,
      const std::vector<std::string>& present, absl::Time now);

  // Takes what the process `incarnation` at `task` shows, in a heartbeat, and
  // writes into the answer what it is to show, if it is to, and what has come.
  void Exchange(absl::string_view task, uint64_t incarnation,
                const wire::HeartbeatRequest& request, absl::Time now,
                wire::HeartbeatResponse& answer);

 private:
  // The part of one task.
  struct Shown {
    uint64_t incarnation = 0;
    wire::InspectionPart part = {};  // all of its parts
    int64_t left_out = 0;            // spans that were not kept

    int64_t spans() const { return part.span_size() + left_out; }
  };

  // Begins another one.
  absl::Status Begin(const wire::InspectRequest& request,
                     const std::vector<std::string>& present, absl::Time now);
  bool IsOver(absl::Time now) const;
  // Returns true if all workers have shown all.
  bool HaveWorkersShown() const;
  void Keep(const wire::InspectionPart& part, Shown& shown) const;
  void KeepSpan(const wire::TraceSpan& span, Shown& shown) const;
  wire::InspectResponse Answer(absl::string_view task) const;

  // nullopt: none was asked for, or it has been forgotten.
  std::optional<wire::Inspection> asked_;
  absl::Time deadline_;
  std::map<std::string, Shown, std::less<>> tasks_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_INSPECTIONS_H_
