#ifndef PARASOL_PARAMETERS_CLIENT_SHARD_STREAM_H_
#define PARASOL_PARAMETERS_CLIENT_SHARD_STREAM_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/payload_lane/payload_connection.h"
#include "cluster/payload_lane/payload_lane.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/shared_payloads.h"
#include "cluster/trust/trust.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace parasol {

// The offers and requests of a worker to the ps of a link. A flag turns false
// when this ps, or this machine, can't do it.
struct StreamOffers {
  // Shared memory for large payloads.
  std::atomic<bool> memory = true;
  // A lane for the messages of each stream.
  std::atomic<bool> lane = true;
  // Number of streams in a row that were offered a lane and ended before it had
  // brought a message.
  std::atomic<int> lane_failures = 0;
};

// The ps to which a stream goes.
struct StreamTarget {
  std::shared_ptr<grpc::Channel> channel;
  // Opens the call (wire::Shard); empty: the ps needs none.
  std::string admission;
  // The task that has to answer, also on a lane.
  Callee callee;
};

// One call of ParameterService.Exchange, from its start to its end. Waits for
// the connection if there is none yet. Asks the ps for a lane, on which the
// messages then travel; without one they travel in the call. Offers the ps
// shared memory for large payloads, which otherwise go through the socket.
// Thread-safe.
class ShardStream : public std::enable_shared_from_this<ShardStream>,
                    private PayloadLane::Observer {
 public:
  // Called on one thread, one call at a time: the thread of the lanes' loop if
  // the stream has asked for a lane, otherwise the queue's thread. A size_t is
  // the number given to Make().
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnResponse(ShardStream& stream,
                            const grpc::ByteBuffer& reply) = 0;
    // Returns where parts of a reply go that has begun to come on a lane
    // (TargetFinder).
    virtual std::optional<FrameTargets> FindReplyTargets(
        size_t lane, absl::string_view start, size_t frame_bytes) = 0;
    // Called when the transport has taken the last Write(), if it has not
    // returned true, and after AskForWritable().
    virtual void OnWritable(size_t lane) = 0;
    // Called last for this stream.
    virtual void OnEnd(size_t lane, const grpc::Status& status) = 0;
  };

  // `queue` is a CompletionThread's; `loop` serves lanes. `observer` and
  // `offers` must live until OnEnd(). The stream itself lives at least until
  // then.
  static std::shared_ptr<ShardStream> Make(StreamTarget target,
                                           grpc::CompletionQueue& queue,
                                           SocketLoop& loop, size_t lane,
                                           Observer& observer,
                                           StreamOffers& offers);
  ~ShardStream() override = default;

  // The shared payloads; null until the first reply has shown that the ps has
  // accepted them.
  SharedPayloads* shared_payloads() {
    return accepted_.load(std::memory_order_acquire) ? offered_.get() : nullptr;
  }

  size_t lane() const { return index_; }

  // Returns true if the ps is asked for a lane, and if one has brought a
  // message. May be called from any thread.
  bool asks_for_lane() const { return asks_for_lane_; }
  bool uses_lane() const { return uses_lane_; }

  // Starts the call. Call it once, before or after the first Write().
  void Start();

  // Returns true if messages travel on a lane, which takes several at once.
  bool has_lane() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return can_write_ && payload_lane_ != nullptr;
  }

  // Writes a message, or several on a lane. One write at a time: the next one
  // after OnWritable(). Returns true if the transport has taken all of it: the
  // next one may follow at once, and OnWritable() does not. Does nothing on a
  // stream that is ending.
  [[nodiscard]] bool Write(std::vector<grpc::ByteBuffer> messages)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Has OnWritable() called all the same, soon, unless the stream ends.
  // Requires that no Write() is under way.
  void AskForWritable();

  // Ends the call soon; OnEnd follows. May be called at any time.
  void Cancel() {
    is_cancelled_ = true;
    context_.TryCancel();
  }

 private:
  using Tag = MemberTag<ShardStream>;

  ShardStream(StreamTarget target, grpc::CompletionQueue& queue,
              SocketLoop& loop, size_t lane, Observer& observer,
              StreamOffers& offers);

  void OnStarted(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  // Called with the ps's answer to the request for a lane.
  void OnMetadata(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives up on lanes if there is no answer by then.
  void LimitAnswer();
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFinished(bool ok);
  void OfferMemory();
  // Looks at the ps's answer to the offer of memory.
  void SeeAnswer();
  // Writes what waits, and what comes, in the call.
  void BeginWrites() ABSL_LOCKS_EXCLUDED(mu_);

  // The following run on the loop's thread.
  void Connect(const PayloadOffer& offer);
  void OnLaneConnected(absl::StatusOr<Descriptor> socket)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<FrameTargets> FindTargets(absl::string_view start,
                                          size_t frame_bytes) override {
    return observer_.FindReplyTargets(index_, start, frame_bytes);
  }
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override;
  void OnPayloadWritten(const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // The call is over: the lane may bring what the ps wrote before.
  void OnCallOver();
  // Closes the lane and tells the observer; may be called twice.
  void EndLane();
  // Ends the call, of which the ps awaits a lane. The next one asks for none,
  // unless this one turns out to have failed by itself.
  void DoWithoutLane(const absl::Status& why);
  // Notes that a lane has brought nothing. If that is certain to be the lane's
  // fault, or has happened often, the next calls ask for none.
  void NoteLaneFailure(bool is_certain);

  // Notes that no more reads will come; asks for the status when no write is
  // under way.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  const size_t index_;
  Observer& observer_;
  std::shared_ptr<ShardStream> self_;  // released when the stream ends

  StreamOffers& offers_;
  std::unique_ptr<SharedPayloads> offered_;
  bool is_answered_ = false;  // used by one thread at a time
  std::atomic<bool> accepted_ = false;
  std::atomic<bool> is_cancelled_ = false;

  SocketLoop& loop_;
  const bool asks_for_lane_;
  std::atomic<bool> uses_lane_ = false;
  // Used by the loop's thread only.
  std::shared_ptr<PayloadConnection> connection_;
  bool is_told_ = false;  // the ps has answered the request for a lane
  bool call_is_over_ = false;
  bool is_offered_lane_ = false;
  bool has_no_lane_ = false;  // the lane could not be opened
  // The error for which this end has cancelled the call.
  absl::Status lane_trouble_;
  bool has_ended_ = false;
  // Set by the loop's thread before can_write_.
  std::shared_ptr<PayloadLane> payload_lane_;

  const StreamTarget target_;  // must outlive the call
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::vector<grpc::ByteBuffer> outgoing_;  // one, but on a lane
  grpc::ByteBuffer incoming_;
  grpc::Status status_;
  Tag started_{this, &ShardStream::OnStarted};
  Tag metadata_{this, &ShardStream::OnMetadata};
  Tag read_{this, &ShardStream::OnRead};
  Tag written_{this, &ShardStream::OnWritten};
  Tag finished_{this, &ShardStream::OnFinished};

  mutable absl::Mutex mu_;
  bool can_write_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_SHARD_STREAM_H_
