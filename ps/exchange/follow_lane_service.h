#ifndef PARASOL_PS_EXCHANGE_FOLLOW_LANE_SERVICE_H_
#define PARASOL_PS_EXCHANGE_FOLLOW_LANE_SERVICE_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "base/metrics.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/payload_lane/payload_lane.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/trust/tls_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/parameter.pb.h"
#include "ps/standby/standby_host.h"

namespace parasol {

// A standby's end of a Follow stream whose messages travel on a lane. It has a
// thread of its own, which receives a message, applies it and receives the
// next: to load a state takes as long as it takes. Answers to messages of which
// the next one is there already are left to that one's.
//
// Make it, tell the primary of offer(), then call Serve() once.
class FollowLane : private PayloadLane::Observer {
 public:
  // Number of messages without an answer, at most, while others follow.
  static constexpr int kMaxUnanswered = 4;

  // The arguments must outlive the object. `end_call` ends the primary's call,
  // `is_cancelled` says that it has ended; both are called on any thread.
  FollowLane(StandbyHost& host, PayloadHost& lanes, const ExpectedPeer& primary,
             std::function<void()> end_call,
             std::function<bool()> is_cancelled);
  ~FollowLane() override;

  const PayloadOffer& offer() const { return offer_; }

  // Takes what the primary sends, until somebody ends the stream; meanwhile
  // `lanes` counts it. Returns why it has ended:
  //   Unavailable  the lane is closed or broken, or has not come.
  //   Cancelled    the call has ended, or the host has ended the stream.
  // and errors of StandbyHost, ReceivedFollow::Parse() and PayloadLane.
  absl::Status Serve(Gauge lanes) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Waits for the primary's connection.
  absl::StatusOr<Descriptor> AwaitSocket() ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadWritten(const absl::Status& status) override;
  absl::Status Take(const grpc::ByteBuffer& bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Sends the newest answer, unless one is being sent, or may join the next.
  void Answer();
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  StandbyHost& host_;
  PayloadHost& lanes_;
  const ExpectedPeer primary_;
  const std::function<void()> end_call_;
  const std::function<bool()> is_cancelled_;
  // Has what the port's thread writes to, perhaps later.
  struct Arrival;
  const std::shared_ptr<Arrival> arrival_;
  const PayloadOffer offer_;

  // The following are used on the loop's thread only.
  std::shared_ptr<PayloadLane> lane_;
  std::unique_ptr<StandbyHost::Stream> stream_;
  std::optional<wire::FollowResponse> answer_;  // the newest that was not sent
  int unanswered_ = 0;
  bool is_writing_ = false;

  absl::Mutex mu_;
  // Why the lane has ended; nullopt: it has not.
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_FOLLOW_LANE_SERVICE_H_
