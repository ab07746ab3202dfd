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
// Results come from that thread or, of operations that had to wait, from any
// other one. A pull that had to wait is read when there is room for it: many
// that have waited together would take their memory together. What is done
// while a message is being sent goes into the next one.
class ExchangeStream : public std::enable_shared_from_this<ExchangeStream> {
 public:
  using Call =
      grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // What streams belong to. Called on the threads of their queues.
  class Host {
   public:
    virtual ~Host() = default;
    // As the generated RequestExchange().
    virtual void RequestCall(grpc::ServerContext* context, Call* call,
                             grpc::ServerCompletionQueue& queue, void* tag) = 0;
    // It is somebody's call now: another one can be accepted.
    virtual void OnOpened(const std::shared_ptr<ExchangeStream>& stream,
                          grpc::ServerCompletionQueue& queue) = 0;
    virtual void OnClosed(const std::shared_ptr<ExchangeStream>& stream) = 0;
    // Once per Accept(), also if no call came. The stream does nothing on its
    // queue any more.
    virtual void OnEnded() = 0;
  };

  // What all streams of a ps share.
  struct Environment {
    ParameterServer& server;
    PsMetrics& metrics;
    std::shared_ptr<BufferBudget> budget;
  };

  // Waits for a call and serves it. The stream holds itself until OnEnded();
  // what its operations are answered with after that is dropped.
  static void Accept(Host& host, const Environment& environment,
                     grpc::ServerCompletionQueue& queue);

  // Reads no more, sends the results of what it has read, except those that
  // have to wait, then ends with `status`. Does not wait. Any thread.
  void End(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Operation = MemberOperation<ExchangeStream>;

  // A message whose operations are being carried out.
  struct Message {
    BufferBudget::Hold hold;
    ReceivedFrame frame;
    SharedPayloads::Hold shared;
    ReceivedRequest request;
    size_t next_operation = 0;
  };

  struct Unanswered {
    uint64_t id = 0;
    // Of its payloads, kept while it waits.
    size_t kept_bytes = 0;
  };
  // A pull that has waited, and may be read.
  struct Due {
    Unanswered operation;
    absl::StatusOr<OperationResult> result;
  };

  ExchangeStream(Host& host, const Environment& environment,
                 grpc::ServerCompletionQueue& queue);

  // Completed operations, one at a time on the queue's thread.
  void OnAccepted(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRetry(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnCallDone(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFinished(bool ok) ABSL_LOCKS_EXCLUDED(mu_);

  void OpenSharedMemory();
  // Does all that can be done now. On the queue's thread.
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  // False: the stream has its share of the buffers.
  bool ReadAhead() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Message> Parse(const grpc::ByteBuffer& bytes);
  // False: paused in it.
  bool Serve(Message& message) ABSL_LOCKS_EXCLUDED(mu_);
  bool MayTakeMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RetrySoon() ABSL_LOCKS_EXCLUDED(mu_);

  // Any thread.
  void Deliver(const Unanswered& operation,
               absl::StatusOr<OperationResult> result) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads what has waited, as far as there is room for it.
  void ReadDue() ABSL_LOCKS_EXCLUDED(mu_);
  // What is to be written now, if anything; counts as being written.
  std::optional<PendingResponses::Message> NextWrite()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write(std::optional<PendingResponses::Message> message);
  void FinishWhenDone() ABSL_LOCKS_EXCLUDED(mu_);
  // What the stream has begun on the queue, and what of it has come back: the
  // last one lets the stream go.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void Settle() ABSL_LOCKS_EXCLUDED(mu_);

  Host& host_;
  const Environment environment_;
  grpc::ServerCompletionQueue& queue_;
  std::optional<BufferBudget::Share> share_;  // from the call's beginning
  std::shared_ptr<ExchangeStream> self_;

  grpc::ServerContext context_;
  Call call_{&context_};
  grpc::Alarm retry_alarm_;
  Operation accepted_{this, &ExchangeStream::OnAccepted};
  Operation read_{this, &ExchangeStream::OnRead};
  Operation written_{this, &ExchangeStream::OnWritten};
  Operation retry_{this, &ExchangeStream::OnRetry};
  Operation call_done_{this, &ExchangeStream::OnCallDone};
  Operation finished_{this, &ExchangeStream::OnFinished};

  // From the call's beginning; null: the worker offers none, or of another
  // machine. Received with on the queue's thread; sent with by who writes.
  std::unique_ptr<SharedPayloads> shared_payloads_;

  // The queue's thread alone.
  grpc::ByteBuffer incoming_;  // while a read is under way
  bool reading_ = false;
  std::optional<grpc::ByteBuffer> received_;
  std::optional<Message> message_;

  mutable absl::Mutex mu_;
  int begun_ ABSL_GUARDED_BY(mu_) = 0;
  // Messages are there whose operations have not all been carried out.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // The worker will send no more.
  bool read_all_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool finishing_ ABSL_GUARDED_BY(mu_) = false;
  // Operations that are being carried out, or wait.
  size_t unanswered_ ABSL_GUARDED_BY(mu_) = 0;
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<Due> due_ ABSL_GUARDED_BY(mu_);
  bool retrying_ ABSL_GUARDED_BY(mu_) = false;
  PendingResponses pending_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_
