#include "cluster/inspection/task_inspection.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cluster/inspection/cut_text.h"
#include "cluster/inspection/thread_stacks.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {

void TaskInspection::ShowThisThreadFirst() { first_ = gettid(); }

void TaskInspection::Begin(const wire::Inspection& asked) {
  shown_ = Shown{.asked = asked};
  if (asked.kind() == wire::Inspection::TRACE) {
    const absl::Time begin =
        absl::FromUnixMicros(asked.begin_unix_micros()) - chief_clock_.ahead();
    recorder_.Start({.begin = begin,
                     .end = begin + FromProto(asked.limit()),
                     .steps = asked.steps()});
    return;
  }
  // Another kind is a newer chief's: there is nothing to show.
  shown_->is_over = true;
  if (asked.kind() == wire::Inspection::STACKS) {
    const int first = number_ != nullptr ? number_() : first_.load();
    shown_->stacks = CutText(StacksOfThreads(first, kStackLimit), kPartBytes);
  }
}

void TaskInspection::Heard(const wire::HeartbeatResponse& answer,
                           absl::Time sent, absl::Time received) {
  if (answer.unix_micros() != 0) {
    chief_clock_.Observe(sent, received,
                         absl::FromUnixMicros(answer.unix_micros()));
  }
  if (!answer.has_inspection()) {
    if (shown_) recorder_.Take();
    shown_.reset();
    has_more_ = false;
    return;
  }
  const wire::Inspection& asked = answer.inspection();
  if (!shown_ || shown_->asked.number() != asked.number()) Begin(asked);
  shown_->known_spans = std::max<int64_t>(0, answer.inspection_spans());
  const bool is_enough = FromProto(asked.limit()) <= absl::ZeroDuration() ||
                         recorder_.IsOver(received);
  if (!shown_->is_over && is_enough) {
    shown_->recorded = recorder_.Take();
    shown_->is_over = true;
  }
  has_more_ = shown_->is_over;
}

void TaskInspection::Report(wire::HeartbeatRequest& request) {
  if (!shown_) return;
  if (!shown_->is_over) {
    // A trace may have ended since the last answer.
    if (!recorder_.IsOver(clock_.Now())) return;
    shown_->recorded = recorder_.Take();
    shown_->is_over = true;
  }
  wire::InspectionPart& part = *request.mutable_inspection();
  part.set_number(shown_->asked.number());
  part.set_stacks(shown_->stacks);
  part.set_dropped(shown_->recorded.dropped);
  part.set_clock_offset_micros(absl::ToInt64Microseconds(chief_clock_.ahead()));
  part.set_clock_delay_micros(absl::ToInt64Microseconds(chief_clock_.delay()));
  WriteSpans(part);
}

void TaskInspection::WriteSpans(wire::InspectionPart& part) const {
  const auto& spans = shown_->recorded.spans;
  size_t next =
      std::min(static_cast<size_t>(shown_->known_spans), spans.size());
  part.set_first_span(static_cast<int64_t>(next));
  size_t bytes = 0;
  for (; next < spans.size() && bytes < kPartBytes; ++next) {
    const TraceRecorder::Span& span = spans[next];
    wire::TraceSpan& entry = *part.add_span();
    entry.set_name(span.name);
    entry.set_track(span.track);
    entry.set_begin_micros(absl::ToUnixMicros(span.begin));
    entry.set_duration_micros(absl::ToInt64Microseconds(span.end - span.begin));
    if (span.step) entry.set_step(*span.step);
    entry.set_bytes(span.bytes);
    bytes += entry.ByteSizeLong() + 3;  // its tag and length
  }
  part.set_is_complete(next == spans.size());
}

}  // namespace parasol
