#ifndef PARASOL_CLUSTER_CLIENT_SHARD_STREAM_H_
#define PARASOL_CLUSTER_CLIENT_SHARD_STREAM_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/shared_payloads.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace parasol {

// One call of ParameterService.Exchange, from its start to its end. Waits for
// the connection if there is none yet. Offers the ps shared memory for large
// payloads, which otherwise go through the socket. Thread-safe.
class ShardStream {
 public:
  // Called on the thread of the queue, one call at a time. A size_t is the
  // number given to Make().
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnResponse(ShardStream& stream,
                            const grpc::ByteBuffer& reply) = 0;
    // Called when the transport has taken the last Write().
    virtual void OnWritable(size_t lane) = 0;
    // Called last for this stream.
    virtual void OnEnd(size_t lane, const grpc::Status& status) = 0;
  };

  // `queue` is a CompletionThread's. `observer` must live until its OnEnd().
  // The stream itself lives at least until then. Memory for large payloads is
  // offered while `offers_memory` is true. That flag must live as long as
  // `observer`, and turns false when the system gives no such memory or the ps
  // has not taken it.
  static std::shared_ptr<ShardStream> Make(
      const std::shared_ptr<grpc::Channel>& channel,
      grpc::CompletionQueue& queue, size_t lane, Observer& observer,
      std::atomic<bool>& offers_memory);

  // The shared payloads; null until the first reply has shown that the ps has
  // accepted them.
  SharedPayloads* shared_payloads() {
    return accepted_.load(std::memory_order_acquire) ? offered_.get() : nullptr;
  }

  size_t lane() const { return lane_; }

  // Starts the call. Call it once, before or after the first Write().
  void Start();

  // Writes a message. One at a time: the next one after OnWritable(). Does
  // nothing on a stream that is ending.
  void Write(grpc::ByteBuffer message) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call soon; OnEnd follows. May be called at any time.
  void Cancel() { context_.TryCancel(); }

 private:
  using Tag = MemberTag<ShardStream>;

  ShardStream(const std::shared_ptr<grpc::Channel>& channel,
              grpc::CompletionQueue& queue, size_t lane, Observer& observer,
              std::atomic<bool>& offers_memory);

  void OnStarted(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFinished(bool ok);
  void OfferMemory();
  // Looks at the ps's answer to the offer of memory.
  void SeeAnswer();
  // Notes that no more reads will come; asks for the status when no write is
  // under way.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  const size_t lane_;
  Observer& observer_;
  std::shared_ptr<ShardStream> self_;  // released by OnFinished

  std::atomic<bool>& offers_memory_;
  std::unique_ptr<SharedPayloads> offered_;
  bool is_answered_ = false;  // used by the queue's thread only
  std::atomic<bool> accepted_ = false;

  const std::shared_ptr<grpc::Channel> channel_;  // must outlive its call
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer outgoing_;
  grpc::ByteBuffer incoming_;
  grpc::Status status_;
  Tag started_{this, &ShardStream::OnStarted};
  Tag read_{this, &ShardStream::OnRead};
  Tag written_{this, &ShardStream::OnWritten};
  Tag finished_{this, &ShardStream::OnFinished};

  absl::Mutex mu_;
  bool can_write_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SHARD_STREAM_H_
