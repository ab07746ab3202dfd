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

// Limits of one stream. Results are limited by number because small ones have
// no share of the buffers.
constexpr size_t kMaxPendingResults = 4 * PendingResponses::kResponseResults;
constexpr size_t kMaxUnanswered = 16 * kMaxOperationsPerMessage;

// Limit on the bytes of ids that the waiting operations of one stream keep: the
// size of the largest message that it may send.
constexpr size_t kMaxKeptBytes = 64 << 20;

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
  Begin();  // call_done_
  ReadAhead();
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
  reading_ = false;
  if (ok) {
    received_.emplace();
    received_->Swap(&incoming_);
  }
  {
    absl::MutexLock lock(&mu_);
    if (!ok) {
      read_all_ = true;
    } else if (finishing_) {
      received_.reset();
    } else {
      busy_ = true;
    }
  }
  Advance();
  Settle();
}

void ExchangeStream::OnWritten(bool ok) {
  {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) cancelled_ = true;
  }
  Advance();
  Settle();
}

void ExchangeStream::OnRetry(bool) {
  {
    absl::MutexLock lock(&mu_);
    retrying_ = false;
  }
  Advance();
  Settle();
}

void ExchangeStream::OnCallDone(bool) {
  {
    absl::MutexLock lock(&mu_);
    if (context_.IsCancelled()) cancelled_ = true;
  }
  Advance();
  Settle();
}

void ExchangeStream::OnFinished(bool) {
  environment_.metrics.streams.Add(-1);
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_streams.Add(-1);
  }
  host_.OnClosed(self_);
  Settle();
}

void ExchangeStream::End(absl::Status status) {
  {
    absl::MutexLock lock(&mu_);
    if (!end_.has_value()) end_ = std::move(status);
  }
  FinishWhenDone();
}

void ExchangeStream::Advance() {
  ReadDue();
  bool paused = false;
  while (!paused && (message_.has_value() || received_.has_value())) {
    if (!message_.has_value()) {
      absl::StatusOr<Message> message = Parse(*received_);
      received_.reset();
      if (!message.ok()) {
        environment_.metrics.malformed_requests_total.Add();
        End(message.status());
        break;
      }
      message_ = *std::move(message);
    }
    ReadAhead();
    paused = !Serve(*message_);
    if (!paused) message_.reset();
  }
  const bool held_back = !ReadAhead() || paused;
  std::optional<PendingResponses::Message> write;
  bool retry;
  {
    absl::MutexLock lock(&mu_);
    busy_ = message_.has_value() || received_.has_value();
    write = NextWrite();
    retry = held_back && !writing_;
  }
  if (retry) RetrySoon();
  Write(std::move(write));
  environment_.metrics.buffered_bytes.Set(environment_.budget->held_bytes());
  FinishWhenDone();
}

bool ExchangeStream::ReadAhead() {
  if (reading_ || received_.has_value()) return true;
  {
    absl::MutexLock lock(&mu_);
    if (read_all_ || cancelled_ || finishing_ || end_.has_value()) return true;
    if (!MayTakeMore()) return false;
    ++begun_;
  }
  reading_ = true;
  call_.Read(&incoming_, &read_);
  return true;
}

absl::StatusOr<ExchangeStream::Message> ExchangeStream::Parse(
    const grpc::ByteBuffer& bytes) {
  wire::RequestHeader header;
  ASSIGN_OR_RETURN(ReceivedFrame frame,
                   ReceivedFrame::Parse(bytes, kMaxRangesPerMessage, &header));
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
  return Message{
      .hold = environment_.budget->Take(bytes.Length() + shared.bytes()),
      .frame = std::move(frame),
      .shared = std::move(shared),
      .request = std::move(request)};
}

bool ExchangeStream::Serve(Message& message) {
  for (size_t& i = message.next_operation; i < message.request.size(); ++i) {
    const Unanswered operation = {.id = message.request.operation(i).id(),
                                  .kept_bytes = KeptBytes(message.request, i)};
    bool too_many;
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return true;
      if (!MayTakeMore()) return false;
      kept_bytes_ += operation.kept_bytes;
      too_many = ++unanswered_ > kMaxUnanswered || kept_bytes_ > kMaxKeptBytes;
    }
    if (too_many) {
      Deliver(operation,
              absl::ResourceExhaustedError(
                  "the worker has too many operations on this stream that "
                  "are not answered"));
      continue;
    }
    environment_.server.Execute(
        message.request, i,
        [weak = weak_from_this(),
         operation](absl::StatusOr<OperationResult> result) {
          if (const auto stream = weak.lock()) {
            stream->Deliver(operation, std::move(result));
          }
        });
  }
  return true;
}

bool ExchangeStream::MayTakeMore() const {
  return share_->MayTakeMore() && pending_.results() < kMaxPendingResults;
}

void ExchangeStream::RetrySoon() {
  {
    absl::MutexLock lock(&mu_);
    if (retrying_ || finishing_) return;
    retrying_ = true;
    ++begun_;
  }
  retry_alarm_.Set(&queue_, gpr_time_from_millis(kRetryMillis, GPR_TIMESPAN),
                   &retry_);
}

void ExchangeStream::Deliver(const Unanswered& operation,
                             absl::StatusOr<OperationResult> result) {
  if (result.ok() && result->read != nullptr) {
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_ || finishing_) return;
      due_.push_back({operation, std::move(result)});
    }
    return ReadDue();
  }
  if (result.ok()) {
    for (PayloadRef& payload : result->payloads) share_->Charge(payload);
  }
  std::optional<PendingResponses::Message> write;
  {
    absl::MutexLock lock(&mu_);
    --unanswered_;
    kept_bytes_ -= operation.kept_bytes;
    if (cancelled_ || finishing_) return;
    pending_.Add(operation.id, std::move(result));
    if (!busy_ ||
        pending_.payload_bytes() >= PendingResponses::kResponseBytes) {
      write = NextWrite();
    }
  }
  Write(std::move(write));
}

void ExchangeStream::ReadDue() {
  for (;;) {
    std::optional<Due> due;
    {
      absl::MutexLock lock(&mu_);
      if (due_.empty() || cancelled_ || finishing_) return;
      if (!MayTakeMore()) {
        // OnWritten() comes back to it.
        if (writing_) return;
        break;
      }
      due = std::move(due_.front());
      due_.pop_front();
    }
    Deliver(due->operation, due->result->read());
  }
  RetrySoon();
}

std::optional<PendingResponses::Message> ExchangeStream::NextWrite() {
  if (cancelled_) pending_.Clear();
  if (writing_ || finishing_ || pending_.results() == 0) return std::nullopt;
  writing_ = true;
  ++begun_;
  return pending_.Take();
}

void ExchangeStream::Write(std::optional<PendingResponses::Message> message) {
  if (!message.has_value()) return;
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_pull_bytes.Add(shared_payloads_->Send(
        message->payloads, *message->header.mutable_shared_payload()));
  }
  call_.Write(EncodeFrame(message->header, message->payloads), &written_);
}

void ExchangeStream::FinishWhenDone() {
  absl::Status status;
  std::deque<Due> dropped;
  {
    absl::MutexLock lock(&mu_);
    if (finishing_ || writing_) return;
    if (!cancelled_) {
      if (busy_ || pending_.results() > 0) return;
      if (!end_.has_value() && !(read_all_ && unanswered_ == 0)) return;
    }
    finishing_ = true;
    dropped.swap(due_);
    ++begun_;
    status = end_.value_or(absl::OkStatus());
  }
  call_.Finish(ToGrpcStatus(status), &finished_);
}

void ExchangeStream::Begin() {
  absl::MutexLock lock(&mu_);
  ++begun_;
}

void ExchangeStream::Settle() {
  bool last;
  {
    absl::MutexLock lock(&mu_);
    last = --begun_ == 0;
  }
  if (!last) return;
  const std::shared_ptr<ExchangeStream> self = std::move(self_);
  host_.OnEnded();
}

}  // namespace parasol
