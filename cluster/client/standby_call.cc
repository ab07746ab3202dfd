#include "cluster/client/standby_call.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "cluster/payload_lane/lane_socket.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/follow_frame.h"
#include "cluster/rpc/status.h"

namespace parasol {
namespace {

// Time that the ps of a lane which has ended has to say why.
constexpr absl::Duration kReasonLimit = absl::Seconds(1);

std::vector<grpc::ByteBuffer> FramesOf(
    absl::Span<const FollowMessage> messages) {
  std::vector<grpc::ByteBuffer> frames;
  frames.reserve(messages.size());
  for (const FollowMessage& message : messages) {
    frames.push_back(EncodeFollow(message));
  }
  return frames;
}

}  // namespace

bool BrokenLanes::MayTry(const std::string& address) {
  absl::MutexLock lock(&mu_);
  const auto broken = broken_.find(address);
  if (broken == broken_.end() || broken->second < kMaxBroken) return true;
  broken_.erase(broken);
  return false;
}

void BrokenLanes::NoteBroken(const std::string& address) {
  absl::MutexLock lock(&mu_);
  ++broken_[address];
}

void BrokenLanes::NoteAnswer(const std::string& address) {
  absl::MutexLock lock(&mu_);
  broken_.erase(address);
}

LaneStandbyCall::LaneStandbyCall(const wire::StandbyPlace& place, Callee callee,
                                 StandbyCall::Observer& observer,
                                 std::shared_ptr<BrokenLanes> broken)
    : peer_(absl::StrCat(place.task(), " at ", place.address())),
      address_(place.address()),
      callee_(std::move(callee)),
      broken_(std::move(broken)),
      observer_(observer),
      channel_(MakeTensorChannel(place.address(), callee_)),
      stub_(wire::ParameterService::NewStub(channel_)) {}

LaneStandbyCall::~LaneStandbyCall() {
  if (!is_finished_) {
    Cancel();
    Finish().IgnoreError();
  }
}

LaneStandbyCall::Call& LaneStandbyCall::Begin(bool asks_for_lane) {
  auto call = std::make_unique<Call>();
  if (asks_for_lane) {
    call->context.AddMetadata(kPayloadLaneKey, kPayloadLaneRequest);
  }
  absl::MutexLock lock(&mu_);
  call->stream = stub_->Follow(&call->context);
  call_ = std::move(call);
  if (is_cancelled_) call_->context.TryCancel();
  return *call_;
}

void LaneStandbyCall::Open() {
  if (!broken_->MayTry(address_)) {
    LOG(WARNING) << "pushes to the standby on " << peer_
                 << " travel in gRPC: payload lanes to it break before they "
                    "have carried anything; look at what is between";
    return UseCall(Begin(/*asks_for_lane=*/false));
  }
  Call& call = Begin(/*asks_for_lane=*/true);
  // The ps answers before any message, if it takes the call.
  call.stream->WaitForInitialMetadata();
  const auto& metadata = call.context.GetServerInitialMetadata();
  const auto answer = metadata.find(kPayloadLaneKey);
  const auto offer = PayloadOffer::Parse(
      answer == metadata.end()
          ? ""
          : absl::string_view(answer->second.data(), answer->second.size()));
  if (!offer.ok()) return UseCall(call);
  const absl::Status opened = OpenLane(call, *offer);
  if (opened.ok()) {
    absl::MutexLock lock(&mu_);
    carrier_ = Carrier::kLane;
    return;
  }
  LOG(INFO) << "pushes to the standby on " << peer_
            << " travel in gRPC: " << opened.message();
  call.context.TryCancel();
  call.stream->Finish();
  UseCall(Begin(/*asks_for_lane=*/false));
}

void LaneStandbyCall::UseCall(Call& call) {
  reads_ = std::thread([this, &call] {
    wire::FollowResponse answer;
    while (call.stream->Read(&answer)) observer_.OnAnswer(answer);
    NoteEnd();
  });
  absl::MutexLock lock(&mu_);
  carrier_ = Carrier::kCall;
}

absl::Status LaneStandbyCall::OpenLane(Call& call, const PayloadOffer& offer) {
  loop_.Post([this, peer = call.context.peer(), offer] {
    connection_ = PayloadConnection::Start(
        peer, offer, loop_, [this](absl::StatusOr<Descriptor> socket) {
          OnConnected(std::move(socket));
        });
  });
  absl::MutexLock lock(&mu_);
  const auto is_done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return connected_.has_value() || is_cancelled_;
  };
  mu_.Await(absl::Condition(&is_done));
  return connected_.value_or(absl::CancelledError("cancelled"));
}

void LaneStandbyCall::OnConnected(absl::StatusOr<Descriptor> socket) {
  const absl::Status status = socket.status();
  if (status.ok()) {
    const ExpectedTask ps =
        callee_.tasks.empty() ? ExpectedTask() : callee_.tasks.front();
    lane_ =
        PayloadLane::Make(LaneSocket(*std::move(socket), callee_.trust.get(),
                                     PeerSide::kClient, {ps.role, ps.index}),
                          loop_, *this);
    lane_->Read();
  }
  absl::MutexLock lock(&mu_);
  connected_ = status;
}

bool LaneStandbyCall::Write(absl::Span<const FollowMessage> messages) {
  Call* call;
  Carrier carrier;
  {
    absl::MutexLock lock(&mu_);
    carrier = carrier_;
  }
  if (carrier == Carrier::kNone) Open();
  {
    absl::MutexLock lock(&mu_);
    carrier = carrier_;
    call = call_.get();
  }
  if (carrier == Carrier::kLane) return WriteOnLane(messages);
  for (const FollowMessage& message : messages) {
    if (!call->stream->Write(WholeRequest(message))) return false;
  }
  return true;
}

bool LaneStandbyCall::WriteOnLane(absl::Span<const FollowMessage> messages) {
  {
    absl::MutexLock lock(&mu_);
    if (lane_ended_) return false;
    is_writing_ = true;
  }
  const bool is_written = lane_->Write(FramesOf(messages));
  absl::MutexLock lock(&mu_);
  if (is_written) {
    is_writing_ = false;
    return true;
  }
  const auto is_done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !is_writing_ || lane_ended_.has_value();
  };
  mu_.Await(absl::Condition(&is_done));
  return !lane_ended_;
}

void LaneStandbyCall::OnPayloadRead(const absl::Status& status,
                                    grpc::ByteBuffer message) {
  if (!status.ok()) return EndLane(status);
  absl::StatusOr<wire::FollowResponse> answer = ParseFollowResponse(message);
  if (!answer.ok()) return EndLane(answer.status());
  lane_->Read();
  if (!std::exchange(has_answer_, true)) broken_->NoteAnswer(address_);
  observer_.OnAnswer(*answer);
}

void LaneStandbyCall::OnPayloadWritten(const absl::Status& status) {
  if (!status.ok()) return EndLane(status);
  absl::MutexLock lock(&mu_);
  is_writing_ = false;
}

void LaneStandbyCall::EndLane(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!lane_ended_) lane_ended_ = why;
  }
  NoteEnd();
}

void LaneStandbyCall::NoteEnd() {
  if (!has_told_end_.exchange(true)) observer_.OnEnd();
}

void LaneStandbyCall::Cancel() {
  absl::MutexLock lock(&mu_);
  is_cancelled_ = true;
  if (call_ != nullptr) call_->context.TryCancel();
  loop_.Post([this] { CloseLane(); });
}

void LaneStandbyCall::CloseLane() {
  if (connection_ != nullptr) connection_->Cancel();
  if (lane_ != nullptr) lane_->Close();
}

absl::Status LaneStandbyCall::Finish() {
  is_finished_ = true;
  Call* call;
  {
    absl::MutexLock lock(&mu_);
    call = call_.get();
  }
  // From here on the lane tells nothing.
  absl::Notification closed;
  loop_.Post([this, call, &closed] {
    CloseLane();
    if (lane_ != nullptr) {
      loop_.PostLater(kReasonLimit, [this, call] {
        absl::MutexLock lock(&mu_);
        has_no_reason_ = true;
        call->context.TryCancel();
      });
    }
    closed.Notify();
  });
  closed.WaitForNotification();
  absl::Status ended = absl::CancelledError("cancelled");
  if (call != nullptr) {
    if (reads_.joinable()) reads_.join();
    ended = FromGrpcStatus(call->stream->Finish(), peer_);
  }
  absl::MutexLock lock(&mu_);
  // The ps says more than that its lane has ended, if it does: one that knows
  // no other reason is Unavailable. Who waits for an answer in vain cancels.
  const bool is_lanes_end = has_no_reason_ || ended.ok();
  if (carrier_ == Carrier::kLane && !has_answer_ &&
      (is_cancelled_ || is_lanes_end || absl::IsUnavailable(ended))) {
    broken_->NoteBroken(address_);
  }
  return lane_ended_ && is_lanes_end ? *lane_ended_ : ended;
}

}  // namespace parasol
