#include "parameters/client/shard_link.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/rpc/call_failure.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/protocol_limits.h"
#include "parameters/client/response_targets.h"

namespace parasol {
namespace {

// Bytes of operations that a ps receives and carries out while the rest of what
// is written with them comes: they stay in its core's cache meanwhile.
constexpr size_t kLaneMessageBytes = 256 << 10;

// At once after the first failure, then 100 ms, 200 ms … 1 s.
absl::Duration Backoff(int failures) {
  if (failures == 0) return absl::ZeroDuration();
  return std::min(absl::Seconds(1),
                  absl::Milliseconds(100) * (1 << std::min(failures - 1, 4)));
}

absl::Status Annotated(const absl::Status& status, absl::string_view peer) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(peer, ": ", status.message()));
}

}  // namespace

Callee CalleeOf(const wire::Shard& place, std::shared_ptr<const Trust> trust) {
  return Callee::Ps(std::move(trust), place.has_host_index()
                                          ? place.host_index()
                                          : place.ps_index());
}

ShardLink::ShardLink(const Options& options, grpc::CompletionQueue& queue,
                     std::vector<SocketLoop*> loops, Clock& clock,
                     const ParameterClientMetrics& metrics,
                     std::function<void()> attention)
    : options_(options),
      queue_(queue),
      clock_(clock),
      metrics_(metrics),
      attention_(std::move(attention)),
      loops_(std::move(loops)),
      address_(options.address),
      ps_incarnation_(options.ps_incarnation),
      admission_(options.admission),
      callee_(options.callee),
      lanes_(options.lanes),
      outbox_(options.lanes, options.limits),
      waiting_since_(clock.Now()),
      owed_to_(waiting_since_),
      lane_retry_(options.lane_retry),
      next_log_(absl::InfinitePast()) {
  offers_.memory = options_.shared_memory;
  offers_.lane = options_.tcp_lanes;
  // gRPC starts threads with a first channel: they are to have this thread's
  // priority, not the lower one of a thread that computes.
  for (Lane& lane : lanes_) {
    lane.channel = MakeTensorChannel(address_, callee_);
  }
}

void ShardLink::Send(absl::Span<const OperationPtr> operations) {
  const absl::Time now = clock_.Now();
  std::vector<std::shared_ptr<ShardStream>> streams;
  std::vector<std::shared_ptr<ShardStream>> turns;
  Departures departures;
  bool stopped;
  {
    absl::MutexLock lock(&mu_);
    stopped = stopped_;
    if (!stopped) {
      if (outbox_.owed() == 0) waiting_since_ = now;
      for (const OperationPtr& operation : operations) outbox_.Add(operation);
      streams = MakeStreams(now);
      turns = GiveTurns();
      departures = TakeDepartures();
      CountOwed(now);
    }
  }
  if (stopped) {
    for (const OperationPtr& operation : operations) {
      operation->call().completion.Finish(absl::CancelledError("stopped"));
    }
    return;
  }
  for (const auto& stream : streams) stream->Start();
  for (const auto& stream : turns) stream->AskForWritable();
  Write(departures);
}

std::vector<std::shared_ptr<ShardStream>> ShardLink::GiveTurns() {
  std::vector<std::shared_ptr<ShardStream>> turns;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (lane.stream == nullptr || lane.writing || lane.refused ||
        !outbox_.HasWaiting(i) || !lane.stream->has_lane()) {
      continue;
    }
    if (!outbox_.LeavesInTurn(i)) continue;
    lane.writing = true;
    turns.push_back(lane.stream);
  }
  return turns;
}

std::vector<std::shared_ptr<ShardStream>> ShardLink::MakeStreams(
    absl::Time now) {
  std::vector<std::shared_ptr<ShardStream>> streams;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const bool needed = lane.stream == nullptr && outbox_.HasWaiting(i);
    if (!needed || now < lane.retry_at) continue;
    if (lane.channel == nullptr) {
      lane.channel = MakeTensorChannel(address_, callee_);
    }
    lane.stream = ShardStream::Make({lane.channel, admission_, callee_}, queue_,
                                    *loops_[i], i, *this, offers_);
    streams.push_back(lane.stream);
  }
  return streams;
}

ShardLink::Departures ShardLink::TakeDepartures() {
  Departures departures;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (std::shared_ptr<const OutgoingMessage> message = TakeMessage(i)) {
      const bool is_full =
          2 * message->bytes() >= options_.limits.message_bytes;
      departures.push_back({.stream = lanes_[i].stream,
                            .message = std::move(message),
                            .ps_incarnation = ps_incarnation_,
                            .acknowledged = outbox_.acknowledged(),
                            .is_full = is_full});
    }
  }
  return departures;
}

std::shared_ptr<const OutgoingMessage> ShardLink::TakeMessage(size_t index) {
  Lane& lane = lanes_[index];
  if (lane.stream == nullptr || lane.writing || lane.refused) return nullptr;
  ShardOutbox::Message operations = outbox_.Take(index);
  if (operations.empty()) return nullptr;
  const size_t resent = std::count_if(
      operations.begin(), operations.end(),
      [](const ShardOutbox::Entry& entry) { return entry.was_sent; });
  if (resent > 0) metrics_.resent_requests.Add(resent);
  // A message has its new operations last.
  if (const ShardOutbox::Entry& last = operations.back(); !last.was_sent) {
    lane.sent.push_back({.last_id = last.id, .at = clock_.Now()});
  }
  lane.writing = true;
  // Under the lock: nobody can finish them before their memory is held.
  return std::make_shared<OutgoingMessage>(std::move(operations));
}

absl::Time ShardLink::Lane::FirstSent(uint64_t id) const {
  return std::partition_point(
             sent.begin(), sent.end(),
             [id](const Sent& message) { return message.last_id < id; })
      ->at;
}

// A stream that is no longer its lane's does nothing with it.
void ShardLink::Write(const Departures& departures) {
  for (const Departure& departure : departures) {
    SharedPayloads* const shared = departure.stream->shared_payloads();
    const bool is_cut = shared == nullptr && departure.stream->has_lane();
    const bool is_written = departure.stream->Write(
        EncodeMessage(departure.message,
                      {.worker_incarnation = options_.worker_incarnation,
                       .layout = options_.layout,
                       .ps_incarnation = departure.ps_incarnation,
                       .acknowledged = departure.acknowledged},
                      shared, is_cut ? kLaneMessageBytes : SIZE_MAX));
    if (is_written) PassOn(departure);
  }
}

// Small operations that come before the loop's turn leave together, and of
// large ones that wait the loop sends the next while this thread goes on. With
// neither, the loop is spared a turn, and this thread to wake it.
void ShardLink::PassOn(const Departure& departure) {
  if (departure.is_full) {
    absl::MutexLock lock(&mu_);
    const size_t index = departure.stream->lane();
    Lane& lane = lanes_[index];
    if (lane.stream != departure.stream) return;
    if (!outbox_.HasWaiting(index)) {
      lane.writing = false;
      return;
    }
  }
  departure.stream->AskForWritable();
}

void ShardLink::OnWritable(size_t index) {
  Departures departures;
  {
    absl::MutexLock lock(&mu_);
    lanes_[index].writing = false;
    departures = TakeDepartures();
    if (!departures.empty()) CountOwed(clock_.Now());
  }
  Write(departures);
}

std::optional<FrameTargets> ShardLink::FindReplyTargets(size_t index,
                                                        absl::string_view start,
                                                        size_t frame_bytes) {
  if (frame_bytes < kMinTargetBytes) return FrameTargets();
  MessageMemory memory;
  const std::optional<ResponseStart> response =
      ReadResponseStart(start, memory);
  if (!response.has_value()) return std::nullopt;
  absl::MutexLock lock(&mu_);
  if (lanes_[index].refused) return FrameTargets();
  const auto find = [&](uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return outbox_.InFlight(index, id);
  };
  return FindResponseTargets(*response, frame_bytes, find);
}

absl::StatusOr<ShardLink::Response> ShardLink::Parse(
    const grpc::ByteBuffer& buffer, SharedPayloads* shared,
    MessageMemory& memory) {
  auto& header = memory.Make<wire::ResponseHeader>();
  ASSIGN_OR_RETURN(ReceivedFrame frame,
                   ReceivedFrame::Parse(buffer, kMaxResponsePayloads, &header));
  std::vector<PayloadView> payloads = frame.TakePayloads();
  RETURN_IF_ERROR(CheckPayloadSizes(header, payloads));
  SharedPayloads::Hold hold;
  if (shared != nullptr) {
    ASSIGN_OR_RETURN(hold, shared->Receive(header.shared_payload(), payloads));
  }
  return Response{.header = header,
                  .frame = std::move(frame),
                  .payloads = std::move(payloads),
                  .hold = std::move(hold)};
}

void ShardLink::OnResponse(ShardStream& stream,
                           const grpc::ByteBuffer& buffer) {
  const size_t index = stream.lane();
  MessageMemory memory;
  const absl::StatusOr<Response> response =
      Parse(buffer, stream.shared_payloads(), memory);
  const absl::Time now = clock_.Now();
  Answered answered;
  Departures departures;
  {
    absl::MutexLock lock(&mu_);
    if (lanes_[index].refused) return;
    if (!response.ok()) {
      Refuse(lanes_[index], std::string(response.status().message()));
      return;
    }
    answered = TakeAnswered(index, response->header);
    if (!answered.operations.empty()) {
      lanes_[index].failures = 0;
      lanes_[index].brings_answers = lanes_[index].stream.get() == &stream;
      waiting_since_ = now;
      SetNamed(false);
    }
    departures = TakeDepartures();
    CountOwed(now);
  }
  Write(departures);
  if (!answered.sent.empty()) Trace(index, answered, now);
  FinishAnswered(answered, *response, now);
}

ShardLink::Answered ShardLink::TakeAnswered(
    size_t index, const wire::ResponseHeader& header) {
  Lane& lane = lanes_[index];
  Answered answered;
  answered.operations.reserve(header.result_size());
  const bool is_traced = options_.trace != nullptr && options_.trace->is_on();
  for (const wire::Result& result : header.result()) {
    if (result.code() == static_cast<int>(absl::StatusCode::kUnavailable)) {
      Refuse(lane, result.message());
      break;
    }
    OperationPtr operation = outbox_.Answer(index, result.id()).operation;
    if (operation != nullptr) {
      if (result.code() != 0 && operation->asked.has_sequence()) {
        outbox_.NoteRefusal();
      }
      const absl::Time sent = lane.FirstSent(result.id());
      const auto note = [sent](std::optional<absl::Time>& first) {
        if (!first.has_value()) first = sent;
      };
      if (operation->call().is_push) note(answered.push_sent);
      if (operation->asked.gives_values()) note(answered.pull_sent);
      if (is_traced) answered.sent.emplace_back(operation, sent);
    }
    answered.operations.push_back(std::move(operation));
  }
  while (!lane.sent.empty() &&
         lane.sent.front().last_id < outbox_.oldest_id(index)) {
    lane.sent.pop_front();
  }
  return answered;
}

// A stream whose shard can't work is ended, and what it still answers is not
// listened to: what follows must not overtake what was refused.
void ShardLink::Refuse(Lane& lane, const std::string& why) {
  last_trouble_ = why;
  lane.refused = true;
  if (lane.stream != nullptr) lane.stream->Cancel();
}

void ShardLink::FinishAnswered(const Answered& answered,
                               const Response& response, absl::Time now) {
  const std::vector<OperationPtr>& operations = answered.operations;
  const wire::ResponseHeader& header = response.header;
  PayloadReader payloads(response.payloads);
  std::vector<absl::Status> statuses(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    const wire::Result& result = header.result(i);
    statuses[i] = ReadResult(result, operations[i].get(), payloads);
    if (result.code() != 0) {
      statuses[i] = absl::Status(static_cast<absl::StatusCode>(result.code()),
                                 result.message());
    }
  }
  Count(answered, statuses, now);
  // The newest first: whoever waits for the oldest is woken once, when all are
  // done.
  for (size_t i = operations.size(); i-- > 0;) {
    if (operations[i] == nullptr) continue;
    if (!statuses[i].ok()) {
      absl::MutexLock lock(&mu_);
      statuses[i] = Annotated(statuses[i], Peer());
    }
    const wire::Result& result = header.result(i);
    operations[i]->asked.call->completion.Finish(
        statuses[i], {.min_updates = result.min_updates(),
                      .max_updates = result.max_updates(),
                      .stale = result.stale()});
  }
}

void ShardLink::Count(const Answered& answered,
                      absl::Span<const absl::Status> statuses, absl::Time now) {
  size_t push_bytes = 0;
  size_t pull_bytes = 0;
  for (size_t i = 0; i < answered.operations.size(); ++i) {
    const EncodedOperation* operation = answered.operations[i].get();
    if (operation == nullptr || !statuses[i].ok()) continue;
    if (operation->call().is_push) push_bytes += operation->payload_bytes;
    pull_bytes += AnswerBytes(*operation);
  }
  if (answered.push_sent.has_value()) {
    metrics_.push_bytes.Add(push_bytes);
    metrics_.push_latency.Observe(
        absl::ToDoubleSeconds(now - *answered.push_sent));
  }
  if (answered.pull_sent.has_value()) {
    metrics_.pull_bytes.Add(pull_bytes);
    metrics_.pull_latency.Observe(
        absl::ToDoubleSeconds(now - *answered.pull_sent));
  }
}

void ShardLink::OnEnd(size_t index, const grpc::Status& status) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  Lane& lane = lanes_[index];
  lane.stream = nullptr;
  lane.writing = false;
  lane.refused = false;
  lane.brings_answers = false;
  if (outbox_.owed() == 0) waiting_since_ = now;
  outbox_.Rewind(index);
  CountOwed(now);
  lane.retry_at = now + Backoff(lane.failures++);
  if (options_.tcp_lanes && !offers_.lane) lane_retry_.NoteFailure(now);
  if (status.error_code() != grpc::StatusCode::CANCELLED) {
    last_trouble_ = DescribeCallFailure(status);
  }
  if (outbox_.HasWaiting(index)) attention_();
}

void ShardLink::MoveTo(const wire::Shard& place) {
  absl::MutexLock lock(&mu_);
  address_ = place.address();
  ps_incarnation_ = place.incarnation();
  admission_ = place.admission();
  callee_ = CalleeOf(place, options_.callee.trust);
  OfferAnew();
  waiting_since_ = clock_.Now();
  DropStreams();
}

void ShardLink::NoteLoading() {
  absl::MutexLock lock(&mu_);
  if (outbox_.unanswered() > 0) loading_at_ = clock_.Now();
}

absl::Time ShardLink::loading_at() const {
  absl::MutexLock lock(&mu_);
  return loading_at_;
}

void ShardLink::OfferAnew() {
  offers_.memory = options_.shared_memory;
  offers_.lane = options_.tcp_lanes;
  offers_.lane_failures = 0;
  lane_retry_.Reset();
}

bool ShardLink::HasUnanswered() const {
  absl::MutexLock lock(&mu_);
  return outbox_.unanswered() > 0;
}

bool ShardLink::IsAway() const {
  return outbox_.owed() > 0 &&
         std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
           return lane.failures > 0 || lane.refused;
         });
}

bool ShardLink::IsCut() const {
  absl::MutexLock lock(&mu_);
  return outbox_.unanswered() > 0 &&
         std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.failures > 0; });
}

absl::Time ShardLink::away_since() const {
  absl::MutexLock lock(&mu_);
  return IsAway() ? waiting_since_ : absl::InfiniteFuture();
}

void ShardLink::CountOwed(absl::Time now) {
  if (owes_ && now > owed_to_) owed_ += now - owed_to_;
  owed_to_ = std::max(owed_to_, now);
  owes_ = outbox_.owed() > 0;
}

TrainingParameters::PeerWait ShardLink::Wait() const {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  TrainingParameters::PeerWait wait = {.owed = owed_};
  if (outbox_.owed() == 0) return wait;
  wait.owed += std::max(absl::ZeroDuration(), now - owed_to_);
  wait.since = std::max(absl::ZeroDuration(), now - waiting_since_);
  if (IsAway()) {
    wait.trouble = absl::StrCat(address_, last_trouble_.empty() ? "" : ": ",
                                last_trouble_);
  }
  return wait;
}

void ShardLink::Stop() {
  ShardOutbox::Message all;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    all = outbox_.TakeAll();
    DropStreams();
    SetNamed(false);
  }
  for (const ShardOutbox::Entry& entry : all) {
    entry.operation->call().completion.Finish(absl::CancelledError("stopped"));
  }
  // gRPC ends a call that is cancelled without waiting for the peer.
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &ShardLink::NoStreams));
}

bool ShardLink::NoStreams() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.stream == nullptr; });
}

std::string ShardLink::Peer() const {
  return absl::StrCat(options_.name, " at ", address_);
}

std::string ShardLink::Trouble() const {
  return last_trouble_.empty() ? "" : absl::StrCat(" (", last_trouble_, ")");
}

}  // namespace parasol
