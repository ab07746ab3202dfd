#ifndef PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_
#define PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/payload_lane/payload_lane.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/rights/rights.h"
#include "cluster/rpc/completion_thread.h"
#include "cluster/rpc/message_memory.h"
#include "cluster/rpc/shared_payloads.h"
#include "cluster/rpc/tensor_frame.h"
#include "cluster/trust/process_secret.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/exchange/buffer_budget.h"
#include "ps/exchange/pending_responses.h"
#include "ps/exchange/stream_flow.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {

// One Exchange call. Its operations are carried out in order on one thread, the
// stream's home, while the next message is being received. If the worker asks
// for a lane, its messages and their answers travel on that, and home is the
// lane's thread; otherwise they travel in the call, and home is the thread that
// polls the call's queue. A stream that
// holds more than its share of the buffers (BufferBudget) pauses, and is not
// read meanwhile. StreamFlow decides what the stream does when; the stream does
// it.
//
// Results come from that thread; the results of operations that had to wait may
// come from any other thread. A pull that had to wait is read only when there
// is room for its values: otherwise many pulls that waited together would take
// their memory together. Results that are ready while a message is being sent
// go into the next one.
class ExchangeStream : public std::enable_shared_from_this<ExchangeStream>,
                       private PayloadLane::Observer {
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

  // The peers that may call a ps.
  struct Access {
    Rights rights = {};
    // The ps's incarnation: a worker opens a stream with an admission that
    // belongs to it. nullopt: it needs none.
    std::optional<uint64_t> incarnation = std::nullopt;
  };

  // The objects that all streams of a ps share.
  struct Environment {
    ParameterServer& server;
    PsMetrics& metrics;
    std::shared_ptr<BufferBudget> budget;
    // Null: all messages travel in their calls.
    PayloadHost* lanes = nullptr;
    Access access = {};
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

  // The peer that has opened the stream.
  struct Caller {
    explicit Caller(std::shared_ptr<BufferBudget> budget)
        : share(std::move(budget)) {}

    BufferBudget::Share share;
    // The worker by its admission; nullopt where none needs one.
    std::optional<AdmittedWorker> worker = std::nullopt;
  };

  // A message that was read, not parsed yet.
  struct Received {
    grpc::ByteBuffer bytes;
    BufferBudget::Hold hold;
  };
  // A message whose operations are being carried out.
  struct Message {
    BufferBudget::Hold hold;
    BufferBudget::Hold shared_hold;
    ReceivedFrame frame;
    SharedPayloads::Hold shared;
    ReceivedMessage request;
    size_t next_operation = 0;
  };

  ExchangeStream(Host& host, const Environment& environment,
                 grpc::ServerCompletionQueue& queue);

  // Called when the queue completes an operation; one at a time, on the queue's
  // thread.
  void OnAccepted(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnMetadataSent(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRead(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnRetry(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnCallDone(bool ok) ABSL_LOCKS_EXCLUDED(mu_);
  void OnFinished(bool ok) ABSL_LOCKS_EXCLUDED(mu_);

  // Runs `work` on the stream's home: at once if the queue's thread is that.
  template <typename Work>
  void AtHome(Work work);
  // Takes the worker that opens the stream.
  //   PermissionDenied  it may not push and pull here.
  absl::Status Admit();
  void OpenSharedMemory();
  // Answers a worker that asks for a lane, and makes the lane's thread home.
  // `reads`: the stream's first read has begun.
  void OfferLane(bool reads);
  void OnLane(absl::StatusOr<Descriptor> socket) ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPayloadWritten(const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Completes what is under way on the lane, or the wait for one.
  void CloseLane() ABSL_LOCKS_EXCLUDED(mu_);
  // Reads, carries out and sends all that is possible now, after something
  // under way has completed. Runs at home.
  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  // Carries out the messages that were read. Returns false if the stream paused
  // before the last operation.
  bool ServeMessages() ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Message> Parse(Received received);
  // Carries out the message's operations. Returns false if the stream paused
  // before the last one.
  bool Serve(Message& message) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the callback that takes the operation's result.
  OperationDone DoneWith(const StreamFlow::Operation& operation);
  // Takes the result of an operation. Any thread may call it.
  void Deliver(const StreamFlow::Operation& operation,
               absl::StatusOr<OperationResult> result) ABSL_LOCKS_EXCLUDED(mu_);
  // Reads the pulls that have waited, as far as there is room for their values.
  void ReadDue() ABSL_LOCKS_EXCLUDED(mu_);

  // Begin what the flow has decided.
  void BeginRead();
  void BeginRetry();
  void BeginWrite(std::optional<PendingResponses::Message> message);
  void BeginFinish(const std::optional<StreamFlow::Finish>& finish);
  // Lets the stream go. The caller holds no lock and does not use it again.
  void Close();

  Host& host_;
  const Environment environment_;
  grpc::ServerCompletionQueue& queue_;
  std::optional<Caller> caller_;  // set when the call begins
  std::shared_ptr<ExchangeStream> self_;

  grpc::ServerContext context_;
  Call call_{&context_};
  grpc::Alarm retry_alarm_;
  Tag accepted_{this, &ExchangeStream::OnAccepted};
  Tag metadata_sent_{this, &ExchangeStream::OnMetadataSent};
  Tag read_{this, &ExchangeStream::OnRead};
  Tag written_{this, &ExchangeStream::OnWritten};
  Tag retry_{this, &ExchangeStream::OnRetry};
  Tag call_done_{this, &ExchangeStream::OnCallDone};
  Tag finished_{this, &ExchangeStream::OnFinished};

  // Set when the call begins; null if the worker offers no shared memory or is
  // on another machine. The stream's home receives with it; the thread that
  // writes sends with it.
  std::unique_ptr<SharedPayloads> shared_payloads_;

  // The loop of the lane; null without one. Set when the call begins.
  SocketLoop* socket_loop_ = nullptr;
  // Set before the first message.
  std::shared_ptr<PayloadLane> payload_lane_;

  // The following are used at home only.
  PayloadId lane_id_ = {};
  bool awaits_lane_ = false;
  bool lane_is_closed_ = false;
  bool reads_lane_ = false;    // a read is under way, or waits for the lane
  grpc::ByteBuffer incoming_;  // filled by a read under way
  std::optional<Received> received_;
  std::optional<Message> message_;
  MessageMemory message_memory_;  // has message_'s header

  absl::Mutex mu_;
  StreamFlow flow_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_EXCHANGE_SERVICE_H_
