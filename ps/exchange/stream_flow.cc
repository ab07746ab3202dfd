#include "ps/exchange/stream_flow.h"

#include <utility>

namespace parasol {

bool StreamFlow::OnRead(bool ok) {
  reading_ = false;
  if (!ok) {
    read_all_ = true;
    return false;
  }
  if (finishing_) return false;
  read_ahead_ = true;
  busy_ = true;
  return true;
}

void StreamFlow::OnWritten(bool ok) {
  writing_ = false;
  if (!ok) cancelled_ = true;
}

void StreamFlow::End(const absl::Status& status) {
  if (!end_.has_value()) end_ = status;
}

bool StreamFlow::WantsRead() const {
  return !reading_ && !read_ahead_ && !read_all_ && !cancelled_ &&
         !finishing_ && !end_.has_value();
}

bool StreamFlow::NextRead(bool has_room) {
  if (!WantsRead() || !MayTakeMore(has_room)) return false;
  reading_ = true;
  ++under_way_;
  return true;
}

StreamFlow::Admission StreamFlow::Admit(const Operation& operation,
                                        bool has_room) {
  if (cancelled_) return Admission::kDrop;
  if (!MayTakeMore(has_room)) return Admission::kPause;
  ++unanswered_;
  kept_bytes_ += operation.kept_bytes;
  const bool too_many =
      unanswered_ > kMaxUnanswered || kept_bytes_ > kMaxKeptBytes;
  return too_many ? Admission::kRefuse : Admission::kServe;
}

bool StreamFlow::AddDue(const Operation& operation,
                        absl::StatusOr<OperationResult>&& result) {
  if (cancelled_ || finishing_) return false;
  due_.push_back({operation, std::move(result)});
  return true;
}

StreamFlow::DueActions StreamFlow::NextDue(bool has_room) {
  if (due_.empty() || cancelled_ || finishing_) return {};
  if (!MayTakeMore(has_room)) {
    // The stream comes back to it when the write has completed.
    return {.retry = !writing_ && NextRetry()};
  }
  DueActions actions = {.due = std::move(due_.front())};
  due_.pop_front();
  return actions;
}

std::optional<PendingResponses::Message> StreamFlow::Answer(
    const Operation& operation, absl::StatusOr<OperationResult>&& result) {
  --unanswered_;
  kept_bytes_ -= operation.kept_bytes;
  if (cancelled_ || finishing_) return std::nullopt;
  pending_.Add(operation.id, std::move(result));
  if (busy_ && pending_.payload_bytes() < PendingResponses::kResponseBytes) {
    return std::nullopt;
  }
  return NextWrite();
}

StreamFlow::Actions StreamFlow::Rest(bool paused, bool has_room) {
  busy_ = paused || read_ahead_;
  Actions actions;
  actions.read = NextRead(has_room);
  const bool held_back = paused || WantsRead();
  // Once nothing is read, nothing more may come.
  const bool holds = expects_more_ && reading_ && !paused && !end_.has_value();
  if (!holds) actions.write = NextWrite();
  actions.retry = held_back && !writing_ && NextRetry();
  actions.finish = NextFinish();
  return actions;
}

std::optional<PendingResponses::Message> StreamFlow::NextHeldWrite() {
  if (busy_ || !end_.has_value()) return std::nullopt;
  return NextWrite();
}

bool StreamFlow::NextRetry() {
  if (retrying_ || finishing_) return false;
  retrying_ = true;
  ++under_way_;
  return true;
}

std::optional<PendingResponses::Message> StreamFlow::NextWrite() {
  if (cancelled_) pending_.Clear();
  if (writing_ || finishing_ || pending_.results() == 0) return std::nullopt;
  writing_ = true;
  ++under_way_;
  return pending_.Take();
}

std::optional<StreamFlow::Finish> StreamFlow::NextFinish() {
  if (finishing_ || writing_) return std::nullopt;
  if (!cancelled_) {
    if (busy_ || pending_.results() > 0) return std::nullopt;
    if (!end_.has_value() && !(read_all_ && unanswered_ == 0)) {
      return std::nullopt;
    }
  }
  finishing_ = true;
  ++under_way_;
  return Finish{.status = end_.value_or(absl::OkStatus()),
                .dropped = std::exchange(due_, {})};
}

}  // namespace parasol
