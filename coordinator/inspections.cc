#include "coordinator/inspections.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/inspection/cut_text.h"
#include "cluster/rpc/proto_duration.h"

namespace parasol {
namespace {

constexpr size_t kMaxSpanText = 64;
constexpr int64_t kMinSpans = 256;
constexpr size_t kMinStackBytes = 4 << 10;
// Nobody's clock, and no span, is off by more: a hundred years.
constexpr int64_t kMostMicros = int64_t{100} * 366 * 24 * 3600 * 1'000'000;

absl::Status CheckInspection(const wire::Inspection& asked) {
  if (asked.number() == 0) {
    return absl::InvalidArgumentError("the inspection has no number");
  }
  // Somebody fetches what was shown.
  if (asked.kind() == wire::Inspection::KIND_UNSPECIFIED) {
    return absl::NotFoundError(
        "that trace, or these stacks, are gone: another inspection has begun, "
        "or the chief has been started again; ask once more");
  }
  if (asked.kind() == wire::Inspection::STACKS) return absl::OkStatus();
  if (asked.kind() != wire::Inspection::TRACE) {
    return absl::InvalidArgumentError(
        absl::StrCat("the inspection is of kind ", asked.kind(),
                     ", which this chief does not know"));
  }
  if (asked.steps() < 1 || asked.steps() > Inspections::kMaxSteps) {
    return absl::InvalidArgumentError(absl::StrCat("a trace of ", asked.steps(),
                                                   " steps: from 1 to ",
                                                   Inspections::kMaxSteps));
  }
  const google::protobuf::Duration& limit = asked.limit();
  const bool is_sane = limit.seconds() >= 0 && limit.nanos() >= 0 &&
                       limit.nanos() < 1'000'000'000 && limit.seconds() <= 3600;
  if (!is_sane || FromProto(limit) <= absl::ZeroDuration() ||
      FromProto(limit) > Inspections::kMaxLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat("the limit of a trace is not above 0 and at most ",
                     absl::FormatDuration(Inspections::kMaxLimit)));
  }
  return absl::OkStatus();
}

std::string SpanText(absl::string_view text) {
  return OneLine(text.substr(0, kMaxSpanText));
}

bool IsSane(const wire::TraceSpan& span) {
  return span.begin_micros() >= 0 && span.begin_micros() <= kMostMicros &&
         span.duration_micros() >= 0 && span.duration_micros() <= kMostMicros &&
         span.bytes() >= 0;
}

}  // namespace

absl::Status Inspections::Begin(const wire::InspectRequest& request,
                                const std::vector<std::string>& present,
                                absl::Time now) {
  RETURN_IF_ERROR(CheckInspection(request.inspection()));
  if (asked_ && !IsOver(now)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "another trace, or stacks, are being taken, for at most ",
        absl::FormatDuration(absl::Ceil(deadline_ - now, absl::Seconds(1))),
        " more: ask again then"));
  }
  std::map<std::string, Shown, std::less<>> tasks;
  const bool is_trace = request.inspection().kind() == wire::Inspection::TRACE;
  for (const std::string& task : present) {
    if (is_trace || request.task().empty() || task == request.task()) {
      tasks[task] = {};
    }
  }
  if (tasks.empty()) {
    return absl::NotFoundError(
        absl::StrCat(ShownText(request.task()),
                     " is not there; there are: ", ShownList(present)));
  }
  // Without what this chief does not know, which may be large.
  asked_.emplace();
  asked_->set_kind(request.inspection().kind());
  asked_->set_number(request.inspection().number());
  deadline_ = now + kSendLimit;
  if (is_trace) {
    const absl::Duration limit = FromProto(request.inspection().limit());
    asked_->set_steps(request.inspection().steps());
    *asked_->mutable_limit() = ToProto(limit);
    asked_->set_begin_unix_micros(absl::ToUnixMicros(now + kLead));
    deadline_ += kLead + limit;
  }
  tasks_ = std::move(tasks);
  return absl::OkStatus();
}

bool Inspections::IsOver(absl::Time now) const {
  return now >= deadline_ || absl::c_all_of(tasks_, [](const auto& task) {
           return task.second.part.is_complete();
         });
}

absl::StatusOr<wire::InspectResponse> Inspections::Inspect(
    const wire::InspectRequest& request,
    const std::vector<std::string>& present, absl::Time now) {
  if (!asked_ || asked_->number() != request.inspection().number()) {
    RETURN_IF_ERROR(Begin(request, present, now));
  }
  return Answer(request.task());
}

wire::InspectResponse Inspections::Answer(absl::string_view task) const {
  wire::InspectResponse response;
  for (const auto& [name, shown] : tasks_) {
    if (!shown.part.is_complete()) response.add_missing_task(name);
    if (!task.empty() && name != task) continue;
    // A process that has shown nothing.
    if (shown.incarnation == 0) continue;
    wire::InspectedTask& entry = *response.add_task();
    entry.set_task(name);
    if (!task.empty()) {
      *entry.add_part() = shown.part;
      continue;
    }
    // Without what is large: who asks again and again gets it task by task.
    wire::InspectionPart& part = *entry.add_part();
    part.set_number(asked_->number());
    part.set_first_span(shown.part.span_size());
    part.set_dropped(shown.part.dropped());
    part.set_is_complete(shown.part.is_complete());
    part.set_clock_offset_micros(shown.part.clock_offset_micros());
    part.set_clock_delay_micros(shown.part.clock_delay_micros());
  }
  return response;
}

bool Inspections::HaveWorkersShown() const {
  bool has_workers = false;
  for (const auto& [name, shown] : tasks_) {
    if (!absl::StartsWith(name, "worker/")) continue;
    has_workers = true;
    if (!shown.part.is_complete()) return false;
  }
  return has_workers;
}

void Inspections::Exchange(absl::string_view task, uint64_t incarnation,
                           const wire::HeartbeatRequest& request,
                           absl::Time now, wire::HeartbeatResponse& answer) {
  if (!asked_) return;
  if (now >= deadline_ + kKept) {
    asked_.reset();
    tasks_.clear();
    return;
  }
  const auto it = tasks_.find(task);
  if (it == tasks_.end() || now >= deadline_) return;
  Shown& shown = it->second;
  // Another process has the place: what its predecessor has shown is whole, or
  // of no use.
  if (shown.incarnation != incarnation && !shown.part.is_complete()) shown = {};
  if (request.inspection().number() == asked_->number() &&
      !shown.part.is_complete()) {
    shown.incarnation = incarnation;
    Keep(request.inspection(), shown);
  }
  if (shown.part.is_complete()) return;
  *answer.mutable_inspection() = *asked_;
  // What the workers do is over.
  if (asked_->kind() == wire::Inspection::TRACE && HaveWorkersShown()) {
    *answer.mutable_inspection()->mutable_limit() =
        ToProto(absl::ZeroDuration());
  }
  answer.set_inspection_spans(shown.spans());
}

void Inspections::Keep(const wire::InspectionPart& part, Shown& shown) const {
  wire::InspectionPart& kept = shown.part;
  // One that was sent before the last answer.
  if (part.first_span() != shown.spans()) return;
  for (const wire::TraceSpan& span : part.span()) KeepSpan(span, shown);
  kept.set_stacks(
      CutText(part.stacks(), std::clamp(kMaxStackBytesOfAll / tasks_.size(),
                                        kMinStackBytes, kMaxStackBytes)));
  kept.set_number(asked_->number());
  kept.set_dropped(std::clamp<int64_t>(part.dropped(), 0, kMostMicros) +
                   shown.left_out);
  const auto sane = [](int64_t micros) {
    return std::clamp(micros, -kMostMicros, kMostMicros);
  };
  kept.set_clock_offset_micros(sane(part.clock_offset_micros()));
  kept.set_clock_delay_micros(sane(part.clock_delay_micros()));
  kept.set_is_complete(part.is_complete());
}

// Field by field: a copy would have what the sender wrote behind them, too.
void Inspections::KeepSpan(const wire::TraceSpan& span, Shown& shown) const {
  const int64_t most =
      std::clamp(kMaxSpansOfAll / static_cast<int64_t>(tasks_.size()),
                 kMinSpans, kMaxSpans);
  if (shown.part.span_size() >= most || !IsSane(span)) {
    ++shown.left_out;
    return;
  }
  wire::TraceSpan& entry = *shown.part.add_span();
  entry.set_name(SpanText(span.name()));
  entry.set_track(SpanText(span.track()));
  entry.set_begin_micros(span.begin_micros());
  entry.set_duration_micros(span.duration_micros());
  if (span.has_step()) entry.set_step(span.step());
  entry.set_bytes(span.bytes());
}

}  // namespace parasol
