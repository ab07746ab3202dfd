#ifndef PARASOL_CLUSTER_CLIENT_STANDBY_CALL_H_
#define PARASOL_CLUSTER_CLIENT_STANDBY_CALL_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "cluster/client/standby_client.h"
#include "cluster/payload_lane/payload_connection.h"
#include "cluster/payload_lane/payload_lane.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/trust/trust.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {

// The addresses whose lanes open and then carry nothing, as behind a middlebox
// that takes connections and closes them. Thread-safe.
class BrokenLanes {
 public:
  // Returns whether the next stream to `address` is to try a lane: not after
  // kMaxBroken that have broken before their first answer, one after the other.
  // The stream after that one tries again.
  bool MayTry(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteBroken(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteAnswer(const std::string& address) ABSL_LOCKS_EXCLUDED(mu_);

  static constexpr int kMaxBroken = 2;

 private:
  absl::Mutex mu_;
  std::map<std::string, int> broken_ ABSL_GUARDED_BY(mu_);
};

// A Follow call with its lane. The first Write() opens both: if there is no
// lane, it begins another call, whose messages travel in it.
class LaneStandbyCall : public StandbyCall, private PayloadLane::Observer {
 public:
  LaneStandbyCall(const wire::StandbyPlace& place, Callee callee,
                  StandbyCall::Observer& observer,
                  std::shared_ptr<BrokenLanes> broken);
  ~LaneStandbyCall() override;

  bool Write(absl::Span<const FollowMessage> messages) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel() override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Finish() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // One call of gRPC.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<wire::FollowRequest, wire::FollowResponse>>
        stream;
  };
  enum class Carrier { kNone, kCall, kLane };

  void Open() ABSL_LOCKS_EXCLUDED(mu_);
  Call& Begin(bool asks_for_lane) ABSL_LOCKS_EXCLUDED(mu_);
  // Has messages travel in the call.
  void UseCall(Call& call) ABSL_LOCKS_EXCLUDED(mu_);
  // Opens the lane that the call was offered.
  absl::Status OpenLane(Call& call, const PayloadOffer& offer)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnConnected(absl::StatusOr<Descriptor> socket) ABSL_LOCKS_EXCLUDED(mu_);
  bool WriteOnLane(absl::Span<const FollowMessage> messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadWritten(const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Called on the loop's thread.
  void CloseLane();
  // Notes why nothing travels on the lane any more.
  void EndLane(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Tells the observer once.
  void NoteEnd();

  const std::string peer_;
  const std::string address_;
  const Callee callee_;
  const std::shared_ptr<BrokenLanes> broken_;
  StandbyCall::Observer& observer_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::ParameterService::Stub> stub_;
  bool is_finished_ = false;
  std::atomic<bool> has_told_end_ = false;
  std::thread reads_;  // runs if messages travel in the call

  // Used on the loop's thread; lane_ by others, too, once it is the carrier.
  std::shared_ptr<PayloadConnection> connection_;
  std::shared_ptr<PayloadLane> lane_;
  bool has_answer_ = false;  // an answer has come on the lane

  absl::Mutex mu_;
  std::unique_ptr<Call> call_ ABSL_GUARDED_BY(mu_);
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  Carrier carrier_ ABSL_GUARDED_BY(mu_) = Carrier::kNone;
  // The outcome of the attempt to connect; nullopt: none yet.
  std::optional<absl::Status> connected_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  // Why the lane has ended; nullopt: it has not.
  std::optional<absl::Status> lane_ended_ ABSL_GUARDED_BY(mu_);

  // True if the ps has not said why the lane has ended.
  bool has_no_reason_ ABSL_GUARDED_BY(mu_) = false;

  // Ends first: it has tasks for this object.
  SocketLoop loop_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_STANDBY_CALL_H_
