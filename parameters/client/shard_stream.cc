#include "parameters/client/shard_stream.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/process_secret.h"

namespace parasol {
namespace {

// A ps answers at once.
constexpr absl::Duration kAnswerLimit = absl::Seconds(3);
// Time for the answers that the ps had written when it ended the call.
constexpr absl::Duration kLastAnswersLimit = absl::Seconds(2);

// Number of lanes in a row that bring nothing after which calls ask for none.
constexpr int kMaxLaneFailures = 3;

constexpr char kMethod[] = "/parasol.wire.ParameterService/Exchange";

}  // namespace

std::shared_ptr<ShardStream> ShardStream::Make(StreamTarget target,
                                               grpc::CompletionQueue& queue,
                                               SocketLoop& loop, size_t lane,
                                               Observer& observer,
                                               StreamOffers& offers) {
  std::shared_ptr<ShardStream> stream(
      new ShardStream(std::move(target), queue, loop, lane, observer, offers));
  stream->self_ = stream;
  return stream;
}

ShardStream::ShardStream(StreamTarget target, grpc::CompletionQueue& queue,
                         SocketLoop& loop, size_t lane, Observer& observer,
                         StreamOffers& offers)
    : index_(lane),
      observer_(observer),
      offers_(offers),
      loop_(loop),
      asks_for_lane_(offers.lane),
      target_(std::move(target)) {
  context_.set_wait_for_ready(true);
  if (!target_.admission.empty()) {
    context_.AddMetadata(kAdmissionKey, target_.admission);
  }
  call_ = grpc::GenericStub(target_.channel)
              .PrepareCall(&context_, kMethod, &queue);
}

void ShardStream::Start() {
  if (offers_.memory) OfferMemory();
  if (asks_for_lane_)
    context_.AddMetadata(kPayloadLaneKey, kPayloadLaneRequest);
  call_->StartCall(&started_);
}

// Nothing is lost when the system gives none: a socket does it too.
void ShardStream::OfferMemory() {
  absl::StatusOr<std::unique_ptr<SharedPayloads>> shared =
      SharedPayloads::Create();
  if (shared.ok()) {
    offered_ = *std::move(shared);
    context_.AddMetadata(kSharedMemoryKey, offered_->offer());
  } else if (offers_.memory.exchange(false)) {
    LOG(WARNING) << "tensors go through sockets: " << shared.status().message();
  }
}

void ShardStream::OnStarted(bool ok) {
  if (!ok) return End();
  if (asks_for_lane_) {
    LimitAnswer();
    return call_->ReadInitialMetadata(&metadata_);
  }
  BeginWrites();
  call_->Read(&incoming_, &read_);
}

void ShardStream::LimitAnswer() {
  loop_.Post([self = self_] {
    self->loop_.PostLater(kAnswerLimit, [weak = std::weak_ptr(self)] {
      const auto self = weak.lock();
      if (self == nullptr || self->is_told_ || self->has_ended_) return;
      self->DoWithoutLane(absl::UnavailableError(
          absl::StrCat("no answer to the request for a payload lane within ",
                       absl::FormatDuration(kAnswerLimit))));
    });
  });
}

void ShardStream::OnMetadata(bool ok) {
  if (!ok) return End();
  loop_.Post([self = self_] { self->is_told_ = true; });
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto answer = metadata.find(kPayloadLaneKey);
  // Otherwise it is a ps that answers later, or none: the call was cut off.
  if (answer != metadata.end()) SeeAnswer();
  const auto offer = PayloadOffer::Parse(
      answer == metadata.end()
          ? ""
          : absl::string_view(answer->second.data(), answer->second.size()));
  if (offer.ok()) {
    loop_.Post([self = self_, offer = *offer] { self->Connect(offer); });
  } else {
    BeginWrites();
  }
  // With a lane nothing comes but the end of the call.
  call_->Read(&incoming_, &read_);
}

void ShardStream::BeginWrites() {
  bool write;
  {
    absl::MutexLock lock(&mu_);
    can_write_ = true;
    write = writing_;
  }
  if (write) call_->Write(outgoing_.front(), &written_);
}

bool ShardStream::Write(std::vector<grpc::ByteBuffer> messages) {
  {
    absl::MutexLock lock(&mu_);
    if (ending_) return false;
    writing_ = true;
    outgoing_ = std::move(messages);
    if (!can_write_) return false;  // BeginWrites() or OnLaneConnected() will
  }
  if (payload_lane_ == nullptr) {
    call_->Write(outgoing_.front(), &written_);
    return false;
  }
  if (!payload_lane_->Write(outgoing_)) return false;
  absl::MutexLock lock(&mu_);
  outgoing_.clear();
  writing_ = false;
  return true;
}

void ShardStream::AskForWritable() {
  loop_.Post([self = shared_from_this()] {
    if (!self->has_ended_) self->observer_.OnWritable(self->index_);
  });
}

void ShardStream::Connect(const PayloadOffer& offer) {
  if (has_ended_) return;
  is_offered_lane_ = true;
  connection_ = PayloadConnection::Start(
      context_.peer(), offer, loop_, [this](absl::StatusOr<Descriptor> socket) {
        OnLaneConnected(std::move(socket));
      });
}

void ShardStream::OnLaneConnected(absl::StatusOr<Descriptor> socket) {
  if (has_ended_) return;
  if (!socket.ok()) return DoWithoutLane(socket.status());
  // With certificates there is a task to expect (Callee).
  const ExpectedTask ps = target_.callee.tasks.empty()
                              ? ExpectedTask()
                              : target_.callee.tasks.front();
  payload_lane_ = PayloadLane::Make(
      LaneSocket(*std::move(socket), target_.callee.trust.get(),
                 PeerSide::kClient, {ps.role, ps.index}),
      loop_, *this);
  bool write;
  {
    absl::MutexLock lock(&mu_);
    can_write_ = true;
    write = writing_ && !ending_;
  }
  if (write && payload_lane_->Write(outgoing_)) {
    OnPayloadWritten(absl::OkStatus());
  }
  payload_lane_->Read();
}

void ShardStream::DoWithoutLane(const absl::Status& why) {
  has_no_lane_ = true;
  lane_trouble_.Update(why);
  context_.TryCancel();
}

void ShardStream::OnPayloadRead(const absl::Status& status,
                                grpc::ByteBuffer message) {
  if (!status.ok()) {
    lane_trouble_.Update(status);
    return call_is_over_ ? EndLane() : context_.TryCancel();
  }
  uses_lane_ = true;
  offers_.lane_failures = 0;
  payload_lane_->Read();
  observer_.OnResponse(*this, message);
}

void ShardStream::OnPayloadWritten(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    outgoing_.clear();
    writing_ = false;
  }
  if (!status.ok()) {
    lane_trouble_.Update(status);
    return context_.TryCancel();
  }
  observer_.OnWritable(index_);
}

void ShardStream::OnCallOver() {
  call_is_over_ = true;
  // The call was cancelled for it; its own status says only that.
  const bool was_for_lane = !lane_trouble_.ok() && !is_cancelled_ &&
                            status_.error_code() == grpc::CANCELLED;
  if (was_for_lane) status_ = ToGrpcStatus(lane_trouble_);
  // A call that is cancelled says nothing of lanes; one that has failed by
  // itself says it if others do, too.
  if ((is_offered_lane_ || has_no_lane_) && !uses_lane_ && !is_cancelled_) {
    NoteLaneFailure(was_for_lane && has_no_lane_);
  }
  const bool may_bring_more =
      payload_lane_ != nullptr && lane_trouble_.ok() && !is_cancelled_;
  if (!may_bring_more) return EndLane();
  // The ps has written its last answers, and closes the lane behind them.
  loop_.PostLater(kLastAnswersLimit, [weak = std::weak_ptr(self_)] {
    if (const auto self = weak.lock()) self->EndLane();
  });
}

void ShardStream::NoteLaneFailure(bool is_certain) {
  const bool is_enough =
      ++offers_.lane_failures >= kMaxLaneFailures || is_certain;
  if (!is_enough || !offers_.lane.exchange(false)) return;
  LOG(INFO) << "tensors to " << context_.peer() << " go through gRPC for now: "
            << (lane_trouble_.ok()
                    ? "calls end before their payload lanes bring anything"
                    : lane_trouble_.message());
}

void ShardStream::EndLane() {
  if (std::exchange(has_ended_, true)) return;
  const std::shared_ptr<ShardStream> self = std::move(self_);
  if (connection_ != nullptr) connection_->Cancel();
  if (payload_lane_ != nullptr) payload_lane_->Close();
  observer_.OnEnd(index_, status_);
}

void ShardStream::OnWritten(bool ok) {
  bool ending;
  {
    absl::MutexLock lock(&mu_);
    outgoing_.clear();
    writing_ = false;
    ending = ending_;
  }
  // A write that failed is followed by a read that fails.
  if (ending) {
    call_->Finish(&status_, &finished_);
  } else if (ok && asks_for_lane_) {
    loop_.Post([self = self_] {
      if (!self->has_ended_) self->observer_.OnWritable(self->index_);
    });
  } else if (ok) {
    observer_.OnWritable(index_);
  }
}

void ShardStream::OnRead(bool ok) {
  if (!ok) return End();
  if (!is_answered_) SeeAnswer();
  if (asks_for_lane_) {
    // Only a ps without lanes answers in the call.
    grpc::ByteBuffer reply;
    reply.Swap(&incoming_);
    return loop_.Post([self = self_, reply] {
      self->observer_.OnResponse(*self, reply);
      self->call_->Read(&self->incoming_, &self->read_);
    });
  }
  grpc::ByteBuffer reply;
  reply.Swap(&incoming_);
  // While the reply is copied out, the next one is received.
  call_->Read(&incoming_, &read_);
  observer_.OnResponse(*this, reply);
}

void ShardStream::SeeAnswer() {
  is_answered_ = true;
  if (offered_ == nullptr) return;
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto answer = metadata.find(kSharedMemoryKey);
  if (answer != metadata.end() && answer->second == kSharedMemoryAccepted) {
    offered_->CloseOffer();
    accepted_.store(true, std::memory_order_release);
  } else {
    offered_.reset();
    offers_.memory = false;
  }
}

void ShardStream::End() {
  bool write_under_way;
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
    // A lane's write ends with the lane.
    write_under_way = writing_ && can_write_ && payload_lane_ == nullptr;
  }
  if (!write_under_way) call_->Finish(&status_, &finished_);
}

void ShardStream::OnFinished(bool) {
  if (asks_for_lane_) {
    return loop_.Post([self = self_] { self->OnCallOver(); });
  }
  const std::shared_ptr<ShardStream> self = std::move(self_);
  observer_.OnEnd(index_, status_);
}

}  // namespace parasol
