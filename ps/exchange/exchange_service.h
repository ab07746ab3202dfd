#ifndef PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_
#define PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/shared_payloads.h"
#include "cluster/rpc/tensor_frame.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/exchange/buffer_budget.h"
#include "ps/exchange/pending_responses.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {

// One Exchange call. Its operations are carried out in order on the thread that
// polls its queue, while the next message is being received. A stream that
// holds more than its share of the buffers (BufferBudget) pauses, and is not
// read meanwhile.
//
// Results come from that thread; the results of operations that had to wait may
// come from any other thread. A pull that had to wait is read only when there
// is room for its values: otherwise many pulls that waited together would take
// their memory together. Results that are ready while a message is being sent
// go into the next one.
class ExchangeStream : public std::enable_shared_from_this<ExchangeStream> {
 public:
  using Call =
      grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // The owner of streams. Called on the threads of the streams' queues.
  class Host {
   public:
    virtual ~Host() = default;
    // Does what the generated RequestExchange() does.
    virtual void RequestCall(grpc::ServerContext* context, Call* call,
                             grpc::ServerCompletionQueue& queue, void* tag) = 0;
    // Called when the stream has its call: another stream can be accepted.
    virtual void OnOpened(const std::shared_ptr<ExchangeStream>& stream,
                          grpc::ServerCompletionQueue& queue) = 0;
    virtual void OnClosed(const std::shared_ptr<ExchangeStream>& stream) = 0;
    // Called once per Accept(), also if no call came. The stream does nothing
    // on its queue afterwards.
    virtual void OnEnded() = 0;
  };

  // The objects that all streams of a ps share.
  struct Environment {
    ParameterServer& server;
    PsMetrics& metrics;
    std::shared_ptr<BufferBudget> budget;
  };

  // Waits for a call and serves it. The stream holds a reference to itself
  // until OnEnded(); results that its operations give later are dropped.
  static void Accept(Host& host, const Environment& environment,
                     grpc::ServerCompletionQueue& queue);

  // Stops reading, sends the results of the operations that were read, except
  // those that have to wait, then ends the call with `status`. Does not block.
  // Any thread may call it.
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Tag = MemberTag<ExchangeStream>;

  // A message whose operations are being carried out.
  struct Message {
    BufferBudget::Hold hold;
    ReceivedFrame frame;
    SharedPayloads::Hold shared;
    ReceivedMessage request;
    size_t next_operation = 0;
  };

  struct Unanswered {
    uint64_t id = 0;
    // Bytes of the operation's payloads that are kept while it waits.
    size_t kept_bytes = 0;
  };
  // A pull that has waited and may now be read.
  struct Due {
    Unanswered operation;
    absl::StatusOr<OperationResult> result;
  };

  ExchangeStream(Host& host, const Environment& environment,
                 grpc::ServerCompletionQueue& queue);

  // Called when the queue completes an operation; one at a time, on the queue's
  // thread.
  void OnAccepted(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRetry(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnCallDone(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFinished(bool ok) ABSL_LOCKS_EXCLUDED(mu_);

  void OpenSharedMemory();
  // Reads, carries out and sends all that is possible now. Runs on the queue's
  // thread.
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  // Begins to read the next message unless there is one already. Returns false
  // if the stream holds its share of the buffers.
  bool ReadAhead() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Message> Parse(const grpc::ByteBuffer& bytes);
  // Carries out the message's operations. Returns false if the stream paused
  // before the last one.
  bool Serve(Message& message) ABSL_LOCKS_EXCLUDED(mu_);
  bool MayTakeMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RetrySoon() ABSL_LOCKS_EXCLUDED(mu_);

  // Takes the result of an operation. Any thread may call it.
  void Deliver(const Unanswered& operation,
               absl::StatusOr<OperationResult> result) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the pulls that have waited, as far as there is room for their values.
  void ReadDue() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the message to write now, if there is any. The caller must write
  // it: `writing_` is set.
  std::optional<PendingResponses::Message> NextWrite()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(std::optional<PendingResponses::Message> message);
  void FinishWhenDone() ABSL_LOCKS_EXCLUDED(mu_);
  // Count the operations that the stream has begun on the queue, and those that
  // have come back. The last Settle() lets the stream go.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void Settle() ABSL_LOCKS_EXCLUDED(mu_);

  Host& host_;
  const Environment environment_;
  grpc::ServerCompletionQueue& queue_;
  std::optional<BufferBudget::Share> share_;  // set when the call begins
  std::shared_ptr<ExchangeStream> self_;

  grpc::ServerContext context_;
  Call call_{&context_};
  grpc::Alarm retry_alarm_;
  Tag accepted_{this, &ExchangeStream::OnAccepted};
  Tag read_{this, &ExchangeStream::OnRead};
  Tag written_{this, &ExchangeStream::OnWritten};
  Tag retry_{this, &ExchangeStream::OnRetry};
  Tag call_done_{this, &ExchangeStream::OnCallDone};
  Tag finished_{this, &ExchangeStream::OnFinished};

  // Set when the call begins; null if the worker offers no shared memory or is
  // on another machine. The queue's thread receives with it; the thread that
  // writes sends with it.
  std::unique_ptr<SharedPayloads> shared_payloads_;

  // The following are used by the queue's thread only.
  grpc::ByteBuffer incoming_;  // filled by a read under way
  bool reading_ = false;
  std::optional<grpc::ByteBuffer> received_;
  std::optional<Message> message_;

  mutable absl::Mutex mu_;
  int begun_ ABSL_GUARDED_BY(mu_) = 0;
  // True if there are messages whose operations have not all been carried out.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // True if the worker will send no more.
  bool read_all_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  // Number of operations that are being carried out or wait.
  size_t unanswered_ ABSL_GUARDED_BY(mu_) = 0;
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Due> due_ ABSL_GUARDED_BY(mu_);
  bool retrying_ ABSL_GUARDED_BY(mu_) = false;
  PendingResponses pending_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_
