#include "ps/exchange/follow_lane_service.h"

#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/work_helpers.h"
#include "cluster/rpc/follow_frame.h"

namespace parasol {
namespace {

// Between two looks at whether the call has ended: gRPC tells nobody.
constexpr absl::Duration kLook = absl::Milliseconds(50);

}  // namespace

// A connection, when it has come.
struct FollowLane::Arrival {
  absl::Mutex mu;
  std::optional<absl::StatusOr<Descriptor>> socket ABSL_GUARDED_BY(mu);
};

FollowLane::FollowLane(StandbyHost& host, PayloadHost& lanes,
                       const ExpectedPeer& primary,
                       std::function<void()> end_call,
                       std::function<bool()> is_cancelled)
    : host_(host),
      lanes_(lanes),
      primary_(primary),
      end_call_(std::move(end_call)),
      is_cancelled_(std::move(is_cancelled)),
      arrival_(std::make_shared<Arrival>()),
      offer_(
          lanes.Expect([arrival = arrival_](absl::StatusOr<Descriptor> socket) {
            absl::MutexLock lock(&arrival->mu);
            arrival->socket = std::move(socket);
          })) {}

FollowLane::~FollowLane() { lanes_.Forget(offer_.id); }

absl::StatusOr<Descriptor> FollowLane::AwaitSocket() {
  Arrival& arrival = *arrival_;
  absl::MutexLock lock(&arrival.mu);
  const auto is_there = [&arrival]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(arrival.mu) {
    return arrival.socket.has_value();
  };
  while (!Clock::Real().AwaitWithTimeout(arrival.mu, absl::Condition(&is_there),
                                         kLook)) {
    if (is_cancelled_()) return absl::CancelledError("the call has ended");
  }
  return *std::move(arrival.socket);
}

absl::Status FollowLane::Serve(Gauge lanes) {
  ASSIGN_OR_RETURN(Descriptor taken, AwaitSocket());
  lanes.Add(1);
  {
    SocketLoop loop;
    const auto socket = std::make_shared<Descriptor>(std::move(taken));
    loop.Post([this, &loop, socket] {
      lane_ = PayloadLane::Make(lanes_.SocketOf(std::move(*socket), primary_),
                                loop, *this, &lanes_.allowance());
      lane_->Read();
    });
    {
      absl::MutexLock lock(&mu_);
      const auto has_ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return ended_.has_value();
      };
      while (!Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&has_ended),
                                             kLook) &&
             !is_cancelled_()) {
      }
    }
    loop.Post([this] { lane_->Close(); });
  }
  lanes.Add(-1);
  stream_.reset();
  absl::MutexLock lock(&mu_);
  return ended_.value_or(absl::CancelledError("the call has ended"));
}

void FollowLane::OnPayloadRead(const absl::Status& status,
                               grpc::ByteBuffer message) {
  if (!status.ok()) return End(status);
  lane_->Read();
  absl::Status taken;
  {
    // While several threads apply a large push of rows, one of them receives
    // what comes next.
    const auto receive = [this] { lane_->ReceiveAhead(); };
    const WorkHelpers::Aside aside(receive);
    taken = Take(message);
  }
  if (!taken.ok()) {
    End(taken);
    return lane_->Close();
  }
  Answer();
}

absl::Status FollowLane::Take(const grpc::ByteBuffer& bytes) {
  ASSIGN_OR_RETURN(const ReceivedFollow message, ReceivedFollow::Parse(bytes));
  if (stream_ == nullptr) {
    ASSIGN_OR_RETURN(stream_, host_.Follow(message.request().header(), [this] {
      End(absl::CancelledError("the standby has ended"));
      end_call_();
    }));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::optional<wire::FollowResponse> answer,
                   stream_->Take(message.request(), message.tensors()));
  if (!answer) return absl::OkStatus();
  answer_ = std::move(answer);
  ++unanswered_;
  return absl::OkStatus();
}

void FollowLane::Answer() {
  if (!answer_ || is_writing_) return;
  if (unanswered_ < kMaxUnanswered && lane_->ReceiveAhead()) return;
  is_writing_ = true;
  unanswered_ = 0;
  const grpc::ByteBuffer frame =
      EncodeFollowResponse(*std::exchange(answer_, std::nullopt));
  if (lane_->Write(frame)) is_writing_ = false;
}

void FollowLane::OnPayloadWritten(const absl::Status& status) {
  is_writing_ = false;
  if (status.ok()) Answer();
}

void FollowLane::End(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (!ended_) ended_ = status;
}

}  // namespace parasol
