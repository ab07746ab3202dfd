#include "ps/exchange/exchange_service.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/status.h"
#include "grpc/support/time.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

// The transport does not tell when it has let go of a response's memory: a
// stream that waits for that while nothing of it is being written looks again.
constexpr int kRetryMillis = 5;

size_t KeptBytes(const ReceivedMessage& request, size_t operation) {
  if (request.operation(operation).row_pull().min_updates() == 0) return 0;
  size_t bytes = 0;
  for (const PayloadView& payload : request.payloads(operation)) {
    bytes += payload.size();
  }
  return bytes;
}

}  // namespace

void ExchangeStream::Accept(Host& host, const Environment& environment,
                            grpc::ServerCompletionQueue& queue) {
  std::shared_ptr<ExchangeStream> stream(
      new ExchangeStream(host, environment, queue));
  stream->self_ = stream;
  stream->context_.AsyncNotifyWhenDone(&stream->call_done_);
  host.RequestCall(&stream->context_, &stream->call_, queue,
                   &stream->accepted_);
}

ExchangeStream::ExchangeStream(Host& host, const Environment& environment,
                               grpc::ServerCompletionQueue& queue)
    : host_(host), environment_(environment), queue_(queue) {}

void ExchangeStream::OnAccepted(bool ok) {
  const std::shared_ptr<ExchangeStream> self = self_;
  if (!ok) {
    // The server is shutting down; the call has never begun.
    self_.reset();
    host_.OnEnded();
    return;
  }
  environment_.metrics.streams.Add(1);
  share_.emplace(environment_.budget);
  OpenSharedMemory();
  bool read;
  {
    absl::MutexLock lock(&mu_);
    read = flow_.NextRead(share_->MayTakeMore());
  }
  if (read) BeginRead();
  host_.OnOpened(self, queue_);
}

void ExchangeStream::OpenSharedMemory() {
  const auto& metadata = context_.client_metadata();
  const auto offer = metadata.find(kSharedMemoryKey);
  if (offer == metadata.end()) return;
  absl::StatusOr<std::unique_ptr<SharedPayloads>> opened =
      SharedPayloads::Open({offer->second.data(), offer->second.size()});
  if (opened.ok()) {
    shared_payloads_ = *std::move(opened);
    context_.AddInitialMetadata(kSharedMemoryKey, kSharedMemoryAccepted);
    environment_.metrics.shared_memory_streams.Add(1);
  } else if (!absl::IsNotFound(opened.status())) {
    LOG(INFO) << "tensors of " << context_.peer()
              << " go through its socket: " << opened.status().message();
  }
}

void ExchangeStream::OnRead(bool ok) {
  if (ok) {
    received_.emplace();
    received_->bytes.Swap(&incoming_);
    received_->hold = environment_.budget->Take(received_->bytes.Length());
  }
  bool serve;
  {
    absl::MutexLock lock(&mu_);
    serve = flow_.OnRead(ok);
  }
  if (!serve) received_.reset();
  Advance();
}

void ExchangeStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    flow_.OnWritten(ok);
  }
  Advance();
}

void ExchangeStream::OnRetry(bool) {
  {
    absl::MutexLock lock(&mu_);
    flow_.OnRetry();
  }
  Advance();
}

void ExchangeStream::OnCallDone(bool) {
  {
    absl::MutexLock lock(&mu_);
    flow_.OnCallDone(context_.IsCancelled());
  }
  Advance();
}

void ExchangeStream::OnFinished(bool) {
  environment_.metrics.streams.Add(-1);
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_streams.Add(-1);
  }
  host_.OnClosed(self_);
  bool last;
  {
    absl::MutexLock lock(&mu_);
    last = flow_.Settle();
  }
  if (last) Close();
}

void ExchangeStream::End(absl::Status status) {
  std::optional<StreamFlow::Finish> finish;
  {
    absl::MutexLock lock(&mu_);
    flow_.End(status);
    finish = flow_.NextFinish();
  }
  BeginFinish(finish);
}

void ExchangeStream::Advance() {
  ReadDue();
  const bool paused = !ServeMessages();
  StreamFlow::Actions next;
  bool last;
  {
    absl::MutexLock lock(&mu_);
    next = flow_.Rest(paused, share_->MayTakeMore());
    last = flow_.Settle();
  }
  if (next.read) BeginRead();
  if (next.retry) BeginRetry();
  BeginWrite(std::move(next.write));
  environment_.metrics.buffered_bytes.Set(environment_.budget->held_bytes());
  BeginFinish(next.finish);
  if (last) Close();
}

bool ExchangeStream::ServeMessages() {
  while (message_.has_value() || received_.has_value()) {
    const bool is_new = !message_.has_value();
    if (is_new) {
      absl::StatusOr<Message> message =
          Parse(*std::exchange(received_, std::nullopt));
      if (!message.ok()) {
        environment_.metrics.malformed_requests_total.Add();
        absl::MutexLock lock(&mu_);
        flow_.BeginMessage();
        flow_.End(message.status());
        return true;
      }
      message_ = *std::move(message);
    }
    bool read;
    {
      absl::MutexLock lock(&mu_);
      if (is_new) flow_.BeginMessage();
      read = flow_.NextRead(share_->MayTakeMore());
    }
    if (read) BeginRead();
    if (!Serve(*message_)) return false;
    message_.reset();
  }
  return true;
}

absl::StatusOr<ExchangeStream::Message> ExchangeStream::Parse(
    Received received) {
  wire::RequestHeader header;
  ASSIGN_OR_RETURN(
      ReceivedFrame frame,
      ReceivedFrame::Parse(received.bytes, kMaxRangesPerMessage, &header));
  std::vector<PayloadView> payloads = frame.TakePayloads();
  SharedPayloads::Hold shared;
  if (shared_payloads_ != nullptr) {
    ASSIGN_OR_RETURN(
        shared, shared_payloads_->Receive(header.shared_payload(), payloads));
    environment_.metrics.shared_memory_push_bytes.Add(shared.bytes());
  }
  ASSIGN_OR_RETURN(
      ReceivedMessage request,
      ReceivedMessage::Create(std::move(header), std::move(payloads)));
  BufferBudget::Hold shared_hold = environment_.budget->Take(shared.bytes());
  return Message{.hold = std::move(received.hold),
                 .shared_hold = std::move(shared_hold),
                 .frame = std::move(frame),
                 .shared = std::move(shared),
                 .request = std::move(request)};
}

bool ExchangeStream::Serve(Message& message) {
  for (size_t& i = message.next_operation; i < message.request.size(); ++i) {
    const StreamFlow::Operation operation = {
        .id = message.request.operation(i).id(),
        .kept_bytes = KeptBytes(message.request, i)};
    StreamFlow::Admission admission;
    {
      absl::MutexLock lock(&mu_);
      admission = flow_.Admit(operation, share_->MayTakeMore());
    }
    switch (admission) {
      case StreamFlow::Admission::kServe:
        environment_.server.Execute(message.request, i, DoneWith(operation));
        break;
      case StreamFlow::Admission::kRefuse:
        Deliver(operation,
                absl::ResourceExhaustedError(
                    "the worker has too many operations on this stream that "
                    "are not answered"));
        break;
      case StreamFlow::Admission::kPause:
        return false;
      case StreamFlow::Admission::kDrop:
        return true;
    }
  }
  return true;
}

// Keeps count of the operation's ids until its result has been read.
OperationDone ExchangeStream::DoneWith(const StreamFlow::Operation& operation) {
  std::shared_ptr<const BufferBudget::Hold> kept;
  if (operation.kept_bytes > 0) {
    kept = std::make_shared<const BufferBudget::Hold>(
        environment_.budget->Take(operation.kept_bytes));
  }
  return [weak = weak_from_this(), operation,
          kept](absl::StatusOr<OperationResult> result) {
    if (kept != nullptr && result.ok() && result->read != nullptr) {
      result->read = [kept, read = std::move(result->read)] { return read(); };
    }
    if (const auto stream = weak.lock()) {
      stream->Deliver(operation, std::move(result));
    }
  };
}

void ExchangeStream::Deliver(const StreamFlow::Operation& operation,
                             absl::StatusOr<OperationResult> result) {
  if (result.ok() && result->read != nullptr) {
    bool added;
    {
      absl::MutexLock lock(&mu_);
      added = flow_.AddDue(operation, std::move(result));
    }
    if (added) ReadDue();
    return;
  }
  if (result.ok()) {
    for (PayloadRef& payload : result->payloads) share_->Charge(payload);
  }
  std::optional<PendingResponses::Message> write;
  {
    absl::MutexLock lock(&mu_);
    write = flow_.Answer(operation, std::move(result));
  }
  BeginWrite(std::move(write));
}

void ExchangeStream::ReadDue() {
  for (;;) {
    StreamFlow::DueActions next;
    {
      absl::MutexLock lock(&mu_);
      next = flow_.NextDue(share_->MayTakeMore());
    }
    if (next.retry) BeginRetry();
    if (!next.due.has_value()) return;
    Deliver(next.due->operation, next.due->result->read());
  }
}

void ExchangeStream::BeginRead() { call_.Read(&incoming_, &read_); }

void ExchangeStream::BeginRetry() {
  retry_alarm_.Set(&queue_, gpr_time_from_millis(kRetryMillis, GPR_TIMESPAN),
                   &retry_);
}

void ExchangeStream::BeginWrite(
    std::optional<PendingResponses::Message> message) {
  if (!message.has_value()) return;
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_pull_bytes.Add(shared_payloads_->Send(
        message->payloads, *message->header.mutable_shared_payload()));
  }
  call_.Write(EncodeFrame(message->header, message->payloads), &written_);
}

void ExchangeStream::BeginFinish(
    const std::optional<StreamFlow::Finish>& finish) {
  if (finish.has_value()) {
    call_.Finish(ToGrpcStatus(finish->status), &finished_);
  }
}

void ExchangeStream::Close() {
  const std::shared_ptr<ExchangeStream> self = std::move(self_);
  host_.OnEnded();
}

}  // namespace parasol
