#include "cluster/inspection/trace_recorder.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {

void TraceRecorder::Start(const Limits& limits) {
  absl::MutexLock lock(&mu_);
  limits_ = limits;
  ends_left_ = limits.steps + 1;
  recorded_ = {};
  is_on_.store(true, std::memory_order_relaxed);
}

void TraceRecorder::Add(Span span) {
  if (!is_on()) return;
  absl::MutexLock lock(&mu_);
  if (!is_on() || span.end < limits_.begin) return;
  if (span.begin > limits_.end) {
    // Nobody has asked for what there is.
    is_on_.store(false, std::memory_order_relaxed);
    return;
  }
  if (recorded_.spans.size() == kMaxSpans) {
    ++recorded_.dropped;
    return;
  }
  recorded_.spans.push_back(std::move(span));
}

void TraceRecorder::EndStep(absl::Time now) {
  if (!is_on()) return;
  absl::MutexLock lock(&mu_);
  if (now < limits_.begin || ends_left_ == 0) return;
  if (--ends_left_ == 0) is_on_.store(false, std::memory_order_relaxed);
}

bool TraceRecorder::IsOver(absl::Time now) const {
  absl::MutexLock lock(&mu_);
  return ends_left_ == 0 || now >= limits_.end;
}

TraceRecorder::Recorded TraceRecorder::Take() {
  absl::MutexLock lock(&mu_);
  is_on_.store(false, std::memory_order_relaxed);
  ends_left_ = 0;
  return std::exchange(recorded_, {});
}

const std::string& TrackOfThread() {
  thread_local const std::string track = absl::StrCat("thread ", gettid());
  return track;
}

}  // namespace parasol
