#include "cluster/client/shard_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/chunk.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/tensor_frame.h"

namespace parasol {
namespace {

// Requests that a stream carries at once: what may wait at the shard.
constexpr size_t kMaxInFlightPerStream = 64;

// A ps may answer a range in several payloads.
constexpr size_t kMaxPayloads = 2 * kMaxRangesPerMessage;

constexpr absl::Duration kLogPeriod = absl::Seconds(10);
constexpr absl::Duration kAttendPeriod = absl::Seconds(1);

// At once after the first failure, then 100 ms, 200 ms … 1 s.
absl::Duration Backoff(int failures) {
  if (failures == 0) return absl::ZeroDuration();
  return std::min(absl::Seconds(1),
                  absl::Milliseconds(100) * (1 << std::min(failures - 1, 4)));
}

grpc::ByteBuffer Encode(const ShardRequest& request,
                        uint64_t worker_incarnation) {
  wire::RequestHeader header;
  header.set_run_id(request.run_id);
  header.set_worker_incarnation(worker_incarnation);
  *header.add_operation() = request.operation;
  std::vector<PayloadRef> payloads;
  payloads.reserve(request.gradients.size());
  if (!request.gradients.empty()) {
    const std::shared_ptr<const void> hold = request.completion->HoldMemory();
    for (absl::Span<const float> gradient : request.gradients) {
      payloads.push_back(
          {gradient.data(), gradient.size() * sizeof(float), hold});
    }
  }
  return EncodeFrame(header, payloads);
}

// Reads the payloads' bytes in order, however the ps has cut them.
class PayloadReader {
 public:
  explicit PayloadReader(const std::vector<PayloadView>& payloads)
      : payloads_(payloads) {
    for (const PayloadView& payload : payloads_) remaining_ += payload.size();
  }

  size_t remaining() const { return remaining_; }

  // The next `bytes`, of which there must be as many.
  void Read(size_t bytes, char* out) {
    remaining_ -= bytes;
    while (bytes > 0) {
      const PayloadView& payload = payloads_[index_];
      const size_t n = std::min(bytes, payload.size() - used_);
      payload.CopyTo(used_, n, out);
      out += n;
      bytes -= n;
      used_ += n;
      if (used_ == payload.size()) {
        ++index_;
        used_ = 0;
      }
    }
  }

 private:
  const std::vector<PayloadView>& payloads_;
  size_t index_ = 0;
  size_t used_ = 0;  // of payloads_[index_]
  size_t remaining_ = 0;
};

absl::Status CopyToTargets(const wire::Result& result, PayloadReader& payloads,
                           const ShardRequest& request) {
  size_t wanted = 0;
  for (const absl::Span<float> target : request.targets) {
    wanted += target.size() * sizeof(float);
  }
  const size_t received =
      std::min<size_t>(result.payload_bytes(), payloads.remaining());
  if (received != wanted) {
    return absl::InternalError(
        absl::StrFormat("%d bytes for ranges of %d", received, wanted));
  }
  for (const absl::Span<float> target : request.targets) {
    payloads.Read(target.size() * sizeof(float),
                  reinterpret_cast<char*>(target.data()));
  }
  return absl::OkStatus();
}

absl::Status Annotated(const absl::Status& status, absl::string_view peer) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(peer, ": ", status.message()));
}

}  // namespace

ParameterClientMetrics::ParameterClientMetrics(MetricsRegistry& registry)
    : push_bytes(registry.AddCounter("parasol_worker_push_bytes_total",
                                     "Gradient bytes acknowledged by ps.")),
      pull_bytes(registry.AddCounter("parasol_worker_pull_bytes_total",
                                     "Value bytes received from ps.")),
      resent_requests(registry.AddCounter(
          "parasol_worker_resent_requests_total",
          "Messages to ps sent again after a stream ended.")),
      push_latency(registry.AddHistogram(
          "parasol_worker_exchange_latency_seconds",
          "From sending a message to a ps until its answer is processed.",
          LatencyBounds(), {{"op", "push"}})),
      pull_latency(registry.AddHistogram(
          "parasol_worker_exchange_latency_seconds",
          "From sending a message to a ps until its answer is processed.",
          LatencyBounds(), {{"op", "pull"}})),
      shards_waiting(
          registry.AddGauge("parasol_worker_shards_waiting",
                            "Ps that have not answered for more than 10 s.")) {}

ShardLink::ShardLink(const Options& options, grpc::CompletionQueue& queue,
                     Clock& clock, const ParameterClientMetrics& metrics,
                     std::function<void()> attention)
    : options_(options),
      queue_(queue),
      clock_(clock),
      metrics_(metrics),
      attention_(std::move(attention)),
      address_(options.address),
      lanes_(options.streams),
      waiting_since_(clock.Now()),
      next_log_(absl::InfinitePast()) {}

void ShardLink::Send(std::vector<ShardRequest> requests) {
  const absl::Time now = clock_.Now();
  std::vector<std::shared_ptr<ShardStream>> streams;
  bool stopped;
  {
    absl::MutexLock lock(&mu_);
    stopped = stopped_;
    if (!stopped) {
      if (Unanswered() == 0) waiting_since_ = now;
      for (ShardRequest& request : requests) Enqueue(std::move(request));
      streams = MakeStreams(now);
    }
  }
  if (stopped) {
    for (const ShardRequest& request : requests) {
      request.completion->Finish(absl::CancelledError("stopped"));
    }
    return;
  }
  for (const auto& stream : streams) stream->Start();
  PumpAll();
}

void ShardLink::Enqueue(ShardRequest request) {
  request.operation.set_id(++last_id_);
  if (request.operation.has_push()) {
    wire::Push& push = *request.operation.mutable_push();
    push.set_sequence(++last_sequence_);
    unanswered_sequences_.insert(last_sequence_);
  }
  Lane& lane = lanes_[request.stream];
  lane.waiting.push_back(std::make_shared<ShardRequest>(std::move(request)));
}

std::vector<std::shared_ptr<ShardStream>> ShardLink::MakeStreams(
    absl::Time now) {
  std::vector<std::shared_ptr<ShardStream>> streams;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    const bool needed = lane.stream == nullptr && !lane.waiting.empty();
    if (!needed || now < lane.retry_at) continue;
    if (lane.channel == nullptr) lane.channel = MakeTensorChannel(address_);
    lane.stream = ShardStream::Make(lane.channel, queue_, i, *this);
    streams.push_back(lane.stream);
  }
  return streams;
}

void ShardLink::PumpAll() {
  for (size_t lane = 0; lane < options_.streams; ++lane) Pump(lane);
}

void ShardLink::Pump(size_t index) {
  RequestPtr request;
  std::shared_ptr<ShardStream> stream;
  {
    absl::MutexLock lock(&mu_);
    Lane& lane = lanes_[index];
    request = NextToSend(lane);
    if (request == nullptr) return;
    lane.writing = true;
    stream = lane.stream;
  }
  // Not the lane's stream any more, perhaps: then this does nothing.
  stream->Write(Encode(*request, options_.worker_incarnation));
}

ShardLink::RequestPtr ShardLink::NextToSend(Lane& lane) {
  if (lane.stream == nullptr || lane.writing || lane.waiting.empty() ||
      lane.in_flight.size() >= kMaxInFlightPerStream) {
    return nullptr;
  }
  RequestPtr request = lane.waiting.front();
  if (request->operation.has_push() &&
      request->operation.push().sequence() >=
          *unanswered_sequences_.begin() + kDedupWindow) {
    return nullptr;
  }
  lane.waiting.pop_front();
  lane.in_flight[request->operation.id()] = request;
  if (request->was_sent) {
    metrics_.resent_requests.Add();
  } else {
    request->started = clock_.Now();
    request->was_sent = true;
  }
  return request;
}

void ShardLink::OnWritable(size_t index) {
  {
    absl::MutexLock lock(&mu_);
    lanes_[index].writing = false;
  }
  Pump(index);
}

void ShardLink::OnReply(size_t lane, const grpc::ByteBuffer& buffer) {
  wire::ResponseHeader header;
  absl::StatusOr<ReceivedFrame> frame =
      ReceivedFrame::Parse(buffer, kMaxPayloads, &header);
  if (!frame.ok()) {
    Refuse(lane, std::string(frame.status().message()));
    return;
  }
  PayloadReader payloads(frame->payloads());
  for (const wire::Result& result : header.result()) {
    absl::Status answer(static_cast<absl::StatusCode>(result.code()),
                        result.message());
    if (absl::IsUnavailable(answer)) {
      Refuse(lane, result.message());
      return;
    }
    const RequestPtr request = TakeAnswered(lane, result.id());
    if (request == nullptr) continue;
    if (answer.ok()) answer = CopyToTargets(result, payloads, *request);
    Finish(*request, answer,
           {.min_updates = result.min_updates(),
            .max_updates = result.max_updates(),
            .stale = result.stale()});
  }
  PumpAll();
}

ShardLink::RequestPtr ShardLink::TakeAnswered(size_t index, uint64_t id) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  Lane& lane = lanes_[index];
  const auto found = lane.in_flight.find(id);
  if (found == lane.in_flight.end()) return nullptr;
  RequestPtr request = std::move(found->second);
  lane.in_flight.erase(found);
  unanswered_sequences_.erase(request->operation.push().sequence());
  lane.failures = 0;
  waiting_since_ = now;
  SetNamed(false);
  return request;
}

// A stream whose shard can't work now is ended, so that what follows on it
// does not overtake what was refused.
void ShardLink::Refuse(size_t index, const std::string& why) {
  absl::MutexLock lock(&mu_);
  last_trouble_ = why;
  if (lanes_[index].stream != nullptr) lanes_[index].stream->Cancel();
}

void ShardLink::OnEnd(size_t index, const grpc::Status& status) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  Lane& lane = lanes_[index];
  lane.stream = nullptr;
  lane.writing = false;
  for (auto it = lane.in_flight.rbegin(); it != lane.in_flight.rend(); ++it) {
    lane.waiting.push_front(it->second);
  }
  lane.in_flight.clear();
  lane.retry_at = now + Backoff(lane.failures++);
  if (status.error_code() != grpc::StatusCode::CANCELLED) {
    last_trouble_ = status.error_message();
  }
  if (!lane.waiting.empty()) attention_();
}

void ShardLink::MoveTo(const std::string& address) {
  absl::MutexLock lock(&mu_);
  address_ = address;
  waiting_since_ = clock_.Now();
  DropStreams();
}

void ShardLink::DropStreams() {
  for (Lane& lane : lanes_) {
    lane.channel = nullptr;
    lane.failures = 0;
    lane.retry_at = absl::InfinitePast();
    if (lane.stream != nullptr) lane.stream->Cancel();
  }
}

absl::Time ShardLink::Attend() {
  const absl::Time now = clock_.Now();
  absl::Time next = now + kAttendPeriod;
  std::vector<std::shared_ptr<ShardStream>> streams;
  std::vector<RequestPtr> late;
  absl::Status why;
  {
    absl::MutexLock lock(&mu_);
    if (stopped_ || Unanswered() == 0) return next;
    if (now - waiting_since_ >= options_.timeout) {
      why = absl::UnavailableError(
          absl::StrCat(Peer(), " has not answered for ",
                       absl::FormatDuration(now - waiting_since_), Trouble()));
      late = TakeAll();
      DropStreams();
      SetNamed(false);
    } else {
      NameIfLate(now);
      streams = MakeStreams(now);
      for (Lane& lane : lanes_) {
        if (lane.stream != nullptr || lane.waiting.empty()) continue;
        next = std::min(next, lane.retry_at);
      }
    }
  }
  for (const RequestPtr& request : late) request->completion->Finish(why);
  for (const auto& stream : streams) stream->Start();
  if (!streams.empty()) PumpAll();
  return next;
}

void ShardLink::NameIfLate(absl::Time now) {
  const absl::Duration waited = now - waiting_since_;
  if (waited < kLogPeriod) return;
  for (Lane& lane : lanes_) {
    if (lane.channel != nullptr) ReconnectNow(*lane.channel);
  }
  if (named_ && now < next_log_) return;
  SetNamed(true);
  next_log_ = now + kLogPeriod;
  LOG(WARNING) << "waiting for " << Peer() << ": " << Unanswered()
               << " requests without an answer for "
               << absl::FormatDuration(waited) << Trouble();
}

void ShardLink::SetNamed(bool named) {
  if (named_ == named) return;
  named_ = named;
  metrics_.shards_waiting.Add(named ? 1 : -1);
}

void ShardLink::Finish(const ShardRequest& request, const absl::Status& status,
                       const ExchangeOutcome& outcome) {
  const bool push = request.operation.has_push();
  (push ? metrics_.push_latency : metrics_.pull_latency)
      .Observe(absl::ToDoubleSeconds(clock_.Now() - request.started));
  if (status.ok()) {
    size_t elements = 0;
    for (const auto& gradient : request.gradients) elements += gradient.size();
    for (const auto& target : request.targets) elements += target.size();
    (push ? metrics_.push_bytes : metrics_.pull_bytes)
        .Add(elements * sizeof(float));
    request.completion->Finish(status, outcome);
    return;
  }
  std::string peer;
  {
    absl::MutexLock lock(&mu_);
    peer = Peer();
  }
  request.completion->Finish(Annotated(status, peer));
}

std::vector<ShardLink::RequestPtr> ShardLink::TakeAll() {
  std::vector<RequestPtr> all;
  for (Lane& lane : lanes_) {
    for (auto& [id, request] : lane.in_flight) all.push_back(request);
    all.insert(all.end(), lane.waiting.begin(), lane.waiting.end());
    lane.in_flight.clear();
    lane.waiting.clear();
  }
  unanswered_sequences_.clear();
  return all;
}

void ShardLink::Stop() {
  std::vector<RequestPtr> all;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    all = TakeAll();
    DropStreams();
    SetNamed(false);
  }
  for (const RequestPtr& request : all) {
    request->completion->Finish(absl::CancelledError("stopped"));
  }
  // gRPC ends a call that is cancelled without waiting for the peer.
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &ShardLink::NoStreams));
}

bool ShardLink::NoStreams() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.stream == nullptr; });
}

size_t ShardLink::Unanswered() const {
  size_t unanswered = 0;
  for (const Lane& lane : lanes_) {
    unanswered += lane.waiting.size() + lane.in_flight.size();
  }
  return unanswered;
}

std::string ShardLink::Peer() const {
  return absl::StrCat(options_.name, " at ", address_);
}

std::string ShardLink::Trouble() const {
  return last_trouble_.empty() ? "" : absl::StrCat(" (", last_trouble_, ")");
}

}  // namespace parasol
