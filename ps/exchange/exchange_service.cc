#include "ps/exchange/exchange_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/work_helpers.h"
#include "cluster/rpc/peer.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/status.h"
#include "grpc/support/time.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

// The transport does not tell when it has let go of a response's memory: a
// stream that waits for that while nothing of it is being written looks again.
constexpr int kRetryMillis = 5;

// Time that a worker has to receive the last results on its lane.
constexpr absl::Duration kLingerLimit = absl::Seconds(2);

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
  caller_.emplace(environment_.budget);
  if (const absl::Status admitted = Admit(); !admitted.ok()) {
    host_.OnOpened(self, queue_);
    return End(admitted);
  }
  OpenSharedMemory();
  const auto& metadata = context_.client_metadata();
  const auto request = metadata.find(kPayloadLaneKey);
  const bool answers = request != metadata.end();
  if (answers && environment_.lanes != nullptr &&
      request->second == kPayloadLaneRequest) {
    socket_loop_ = environment_.lanes->NextLoop();
  }
  const bool has_lane = socket_loop_ != nullptr;
  bool read;
  {
    absl::MutexLock lock(&mu_);
    read = flow_.NextRead(caller_->share.MayTakeMore());
    if (answers) flow_.OnOtherBegun();
    if (has_lane) flow_.OnOtherBegun();
  }
  if (has_lane) {
    OfferLane(read);
  } else if (answers) {
    context_.AddInitialMetadata(kPayloadLaneKey, kNoPayloadLane);
  }
  // The worker waits for the answer before it sends anything.
  if (answers) call_.SendInitialMetadata(&metadata_sent_);
  if (read && !has_lane) BeginRead();
  host_.OnOpened(self, queue_);
}

absl::Status ExchangeStream::Admit() {
  const ExchangeStream::Access& access = environment_.access;
  wire::Task task;
  task.set_role("worker");
  if (access.incarnation) {
    const auto& metadata = context_.client_metadata();
    const auto shown = metadata.find(kAdmissionKey);
    const grpc::string_ref admission =
        shown == metadata.end() ? grpc::string_ref() : shown->second;
    ASSIGN_OR_RETURN(caller_->worker,
                     ReadAdmission({admission.data(), admission.size()},
                                   *access.incarnation));
    task.set_index(caller_->worker->index);
  }
  return access.rights.Check(Method::kExchange, PeerOf(context_), task);
}

void ExchangeStream::OnMetadataSent(bool) {
  AtHome([this] { Advance(); });
}

template <typename Work>
void ExchangeStream::AtHome(Work work) {
  if (socket_loop_ == nullptr) return work();
  socket_loop_->Post([self = shared_from_this(), work] { work(); });
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

void ExchangeStream::OfferLane(bool reads) {
  awaits_lane_ = true;
  reads_lane_ = reads;
  const PayloadOffer offer = environment_.lanes->Expect(
      [self = shared_from_this()](absl::StatusOr<Descriptor> socket) {
        // Tasks can be copied, sockets can't.
        const auto taken =
            std::make_shared<absl::StatusOr<Descriptor>>(std::move(socket));
        self->socket_loop_->Post(
            [self, taken] { self->OnLane(std::move(*taken)); });
      });
  lane_id_ = offer.id;
  context_.AddInitialMetadata(kPayloadLaneKey, offer.ToString());
}

void ExchangeStream::OnLane(absl::StatusOr<Descriptor> socket) {
  const std::shared_ptr<ExchangeStream> self = shared_from_this();
  awaits_lane_ = false;
  if (socket.ok() && !lane_is_closed_) {
    // A lane is a part of its call: the same task is at its other end.
    const PeerIdentity caller = PeerOf(context_).value_or(PeerIdentity());
    payload_lane_ = PayloadLane::Make(
        environment_.lanes->SocketOf(*std::move(socket),
                                     {caller.role, caller.index}),
        *socket_loop_, *this, &environment_.lanes->allowance());
    environment_.metrics.lanes.Add(1);
    if (reads_lane_) payload_lane_->Read();
  } else {
    {
      absl::MutexLock lock(&mu_);
      flow_.End(absl::UnavailableError(socket.status().message()));
    }
    if (std::exchange(reads_lane_, false)) OnRead(false);
  }
  Advance();
}

void ExchangeStream::OnPayloadRead(const absl::Status& status,
                                   grpc::ByteBuffer message) {
  reads_lane_ = false;
  if (absl::IsInvalidArgument(status)) {
    environment_.metrics.malformed_requests_total.Add();
  }
  if (absl::IsUnauthenticated(status)) {
    LOG_EVERY(WARNING, absl::Seconds(10))
        << "refused a payload lane of " << context_.peer() << ": "
        << status.message();
  }
  if (absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)) {
    absl::MutexLock lock(&mu_);
    flow_.End(status);
  }
  incoming_.Swap(&message);
  OnRead(status.ok());
}

void ExchangeStream::OnPayloadWritten(const absl::Status& status) {
  OnWritten(status.ok());
}

void ExchangeStream::CloseLane() {
  const std::shared_ptr<ExchangeStream> self = shared_from_this();
  lane_is_closed_ = true;
  if (payload_lane_ != nullptr) {
    environment_.metrics.lanes.Add(-1);
    // The worker has yet to receive the last results.
    return payload_lane_->Linger(kLingerLimit);
  }
  if (!awaits_lane_) return;
  // A connection that has just been taken comes to OnLane() by itself.
  if (environment_.lanes->Forget(lane_id_)) {
    OnLane(absl::CancelledError("the stream has ended"));
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
  AtHome([this] {
    {
      absl::MutexLock lock(&mu_);
      flow_.OnRetry();
    }
    Advance();
  });
}

void ExchangeStream::OnCallDone(bool) {
  AtHome([this] {
    {
      absl::MutexLock lock(&mu_);
      flow_.OnCallDone(context_.IsCancelled());
    }
    // As gRPC does with what is under way in the call.
    if (payload_lane_ != nullptr && context_.IsCancelled()) {
      payload_lane_->Close();
    }
    Advance();
  });
}

void ExchangeStream::OnFinished(bool) {
  environment_.metrics.streams.Add(-1);
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_streams.Add(-1);
  }
  host_.OnClosed(self_);
  AtHome([this] {
    if (socket_loop_ != nullptr) CloseLane();
    bool last;
    {
      absl::MutexLock lock(&mu_);
      last = flow_.Settle();
    }
    if (last) Close();
  });
}

void ExchangeStream::End(absl::Status status) {
  std::optional<PendingResponses::Message> write;
  std::optional<StreamFlow::Finish> finish;
  {
    absl::MutexLock lock(&mu_);
    flow_.End(status);
    write = flow_.NextHeldWrite();
    finish = flow_.NextFinish();
  }
  BeginWrite(std::move(write));
  BeginFinish(finish);
}

void ExchangeStream::Advance() {
  ReadDue();
  const bool paused = !ServeMessages();
  StreamFlow::Actions next;
  bool last;
  {
    absl::MutexLock lock(&mu_);
    next = flow_.Rest(paused, caller_->share.MayTakeMore());
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
        flow_.BeginMessage(/*more=*/false);
        flow_.End(message.status());
        return true;
      }
      message_ = *std::move(message);
    }
    bool read;
    {
      absl::MutexLock lock(&mu_);
      if (is_new) flow_.BeginMessage(message_->request.more());
      read = flow_.NextRead(caller_->share.MayTakeMore());
    }
    if (read) BeginRead();
    if (!Serve(*message_)) return false;
    message_.reset();
    message_memory_.Reset();
  }
  return true;
}

absl::StatusOr<ExchangeStream::Message> ExchangeStream::Parse(
    Received received) {
  auto& header = message_memory_.Make<wire::RequestHeader>();
  ASSIGN_OR_RETURN(
      ReceivedFrame frame,
      ReceivedFrame::Parse(received.bytes, kMaxRangesPerMessage, &header));
  if (caller_->worker &&
      header.worker_incarnation() != caller_->worker->incarnation) {
    return absl::PermissionDeniedError(
        absl::StrCat("a message of another process on the stream of worker/",
                     caller_->worker->index));
  }
  std::vector<PayloadView> payloads = frame.TakePayloads();
  SharedPayloads::Hold shared;
  if (shared_payloads_ != nullptr) {
    ASSIGN_OR_RETURN(
        shared, shared_payloads_->Receive(header.shared_payload(), payloads));
    environment_.metrics.shared_memory_push_bytes.Add(shared.bytes());
  }
  ASSIGN_OR_RETURN(ReceivedMessage request,
                   ReceivedMessage::Create(header, std::move(payloads)));
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
      admission = flow_.Admit(operation, caller_->share.MayTakeMore());
    }
    switch (admission) {
      case StreamFlow::Admission::kServe: {
        // While several threads apply a large push of rows, one of them
        // receives what comes next.
        const auto receive = [this] {
          if (payload_lane_ != nullptr) payload_lane_->ReceiveAhead();
        };
        const WorkHelpers::Aside aside(receive);
        environment_.server.Execute(message.request, i, DoneWith(operation),
                                    &message.frame);
        break;
      }
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
    for (PayloadRef& payload : result->payloads) caller_->share.Charge(payload);
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
      next = flow_.NextDue(caller_->share.MayTakeMore());
    }
    if (next.retry) BeginRetry();
    if (!next.due.has_value()) return;
    Deliver(next.due->operation, next.due->result->read());
  }
}

void ExchangeStream::BeginRead() {
  if (socket_loop_ == nullptr) {
    call_.Read(&incoming_, &read_);
  } else {
    reads_lane_ = true;
    payload_lane_->Read();
  }
}

void ExchangeStream::BeginRetry() {
  retry_alarm_.Set(&queue_, gpr_time_from_millis(kRetryMillis, GPR_TIMESPAN),
                   &retry_);
}

void ExchangeStream::BeginWrite(
    std::optional<PendingResponses::Message> message) {
  if (!message.has_value()) return;
  if (shared_payloads_ != nullptr) {
    environment_.metrics.shared_memory_pull_bytes.Add(shared_payloads_->Send(
        message->payloads, *message->header->mutable_shared_payload()));
  }
  if (payload_lane_ != nullptr) {
    auto& sizes = *message->header->mutable_payload_size();
    for (const PayloadRef& payload : message->payloads) {
      sizes.Add(static_cast<uint32_t>(payload.size));
    }
  }
  const grpc::ByteBuffer frame =
      EncodeFrame(*message->header, message->payloads);
  if (payload_lane_ == nullptr) return call_.Write(frame, &written_);
  if (!payload_lane_->Write(frame)) return;
  // Not from here: results that come meanwhile leave together.
  socket_loop_->Post([self = shared_from_this()] { self->OnWritten(true); });
}

void ExchangeStream::BeginFinish(
    const std::optional<StreamFlow::Finish>& finish) {
  if (!finish.has_value()) return;
  call_.Finish(ToGrpcStatus(finish->status), &finished_);
}

void ExchangeStream::Close() {
  const std::shared_ptr<ExchangeStream> self = std::move(self_);
  if (socket_loop_ != nullptr) environment_.lanes->LaneEnded();
  host_.OnEnded();
}

}  // namespace parasol
