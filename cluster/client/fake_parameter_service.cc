#include "cluster/client/fake_parameter_service.h"

#include <cstring>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "grpcpp/support/server_callback.h"

namespace parasol {
namespace {

std::string AllBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  CHECK(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(slice.begin(), slice.end());
  }
  return bytes;
}

}  // namespace

// One stream; deletes itself.
class FakeParameterService::Reactor
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Reactor(FakeParameterService& fake) : fake_(fake) {
    StartRead(&incoming_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    Outcome outcome = fake_.Handle(incoming_);
    if (outcome.end_stream) {
      return End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken"));
    }
    if (outcome.answer) Reply(std::move(outcome.reply));
    StartRead(&incoming_);
  }

  void Reply(std::string reply) {
    absl::MutexLock lock(&mu_);
    replies_.push_back(std::move(reply));
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mu_);
    writing_ = false;
    if (ok) WriteNext();
  }

  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (writing_ || ended_ || replies_.empty()) return;
    writing_ = true;
    grpc::Slice slice(replies_.front());
    replies_.pop_front();
    outgoing_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&outgoing_);
  }

  void End(const grpc::Status& status) {
    {
      absl::MutexLock lock(&mu_);
      ended_ = true;
    }
    Finish(status);
  }

  void OnDone() override { delete this; }

  FakeParameterService& fake_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  absl::Mutex mu_;
  std::deque<std::string> replies_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

class FakeParameterService::Service
    : public wire::ParameterService::WithRawCallbackMethod_Exchange<
          wire::ParameterService::Service> {
 public:
  explicit Service(FakeParameterService& fake) : fake_(fake) {}

 private:
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext*) override {
    return new Reactor(fake_);
  }

  FakeParameterService& fake_;
};

FakeParameterService::FakeParameterService()
    : service_(std::make_unique<Service>(*this)) {
  StartServer();
}

FakeParameterService::~FakeParameterService() { StopServer(); }

void FakeParameterService::StopServer() { server_ = nullptr; }

void FakeParameterService::StartServer() {
  absl::StatusOr<std::unique_ptr<RpcServer>> server =
      RpcServer::Start(address_, {service_.get()});
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  address_ = absl::StrCat("127.0.0.1:", server_->port());
}

void FakeParameterService::SetFault(
    std::function<Fault(const wire::Operation&)> fault) {
  absl::MutexLock lock(&mu_);
  fault_ = std::move(fault);
}

void FakeParameterService::AddPart(uint32_t part, size_t elements) {
  absl::MutexLock lock(&mu_);
  values_[part].assign(elements, 0.0f);
}

std::vector<float> FakeParameterService::Values(uint32_t part) {
  absl::MutexLock lock(&mu_);
  return values_[part];
}

void FakeParameterService::AwaitRequests(size_t count) {
  const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return requests_ >= count;
  };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&enough));
}

std::map<uint64_t, int> FakeParameterService::Sequences() {
  absl::MutexLock lock(&mu_);
  return sequences_;
}

std::set<uint64_t> FakeParameterService::Incarnations() {
  absl::MutexLock lock(&mu_);
  return incarnations_;
}

std::set<std::string> FakeParameterService::RunIds() {
  absl::MutexLock lock(&mu_);
  return run_ids_;
}

uint64_t FakeParameterService::MaxAhead() {
  absl::MutexLock lock(&mu_);
  return max_ahead_;
}

void FakeParameterService::Note(uint64_t sequence) {
  ++sequences_[sequence];
  uint64_t oldest = 1;
  for (uint64_t answered : answered_) {
    if (answered != oldest) break;
    ++oldest;
  }
  if (sequence > oldest) {
    max_ahead_ = std::max(max_ahead_, sequence - oldest);
  }
}

void FakeParameterService::Apply(const wire::Push& push,
                                 const std::string* payload,
                                 wire::Result& result) {
  const bool is_new = applied_.insert(push.sequence()).second;
  result.set_duplicate(!is_new);
  for (int i = 0; is_new && i < push.range_size(); ++i) {
    const wire::TensorRange& range = push.range(i);
    CHECK_EQ(payload[i].size(), range.count() * sizeof(float));
    std::vector<float> gradient(range.count());
    std::memcpy(gradient.data(), payload[i].data(), payload[i].size());
    for (size_t j = 0; j < gradient.size(); ++j) {
      values_[range.part()].at(range.first() + j) -= gradient[j];
    }
  }
}

void FakeParameterService::Read(const wire::Pull& pull,
                                wire::ExchangeResponse& response,
                                wire::Result& result) {
  size_t total = 0;
  for (const wire::TensorRange& range : pull.range()) {
    std::vector<float>& values = values_[range.part()];
    CHECK_LE(range.first() + range.count(), values.size());
    // A ps may cut a range anywhere: this one does, inside an element.
    const size_t bytes = range.count() * sizeof(float);
    const size_t cut = bytes / 2 + 1;
    const auto* first =
        reinterpret_cast<const char*>(values.data() + range.first());
    response.add_payload(first, cut);
    response.add_payload(first + cut, bytes - cut);
    total += bytes;
  }
  result.set_payload_bytes(total);
}

bool FakeParameterService::Do(const wire::Operation& operation,
                              const std::string*& payload,
                              wire::ExchangeResponse& response) {
  ++requests_;
  if (operation.has_push()) Note(operation.push().sequence());
  const Fault fault = fault_ ? fault_(operation) : Fault::kNone;
  if (fault == Fault::kBreakBefore) return false;
  wire::Result result;
  result.set_id(operation.id());
  if (fault == Fault::kUnavailable || fault == Fault::kOtherRun) {
    result.set_code(static_cast<int>(
        fault == Fault::kUnavailable ? absl::StatusCode::kUnavailable
                                     : absl::StatusCode::kFailedPrecondition));
    result.set_message("not now");
    *response.mutable_header()->add_result() = result;
    payload += operation.push().range_size();
    return true;
  }
  if (operation.has_push()) {
    Apply(operation.push(), payload, result);
    payload += operation.push().range_size();
  } else {
    Read(operation.pull(), response, result);
  }
  if (fault == Fault::kBreakAfter) return false;
  if (fault == Fault::kDropReply) return true;
  if (fault == Fault::kShortReply) response.mutable_payload()->RemoveLast();
  if (operation.has_push()) answered_.insert(operation.push().sequence());
  *response.mutable_header()->add_result() = result;
  return true;
}

FakeParameterService::Outcome FakeParameterService::Handle(
    const grpc::ByteBuffer& bytes) {
  wire::ExchangeRequest request;
  CHECK(request.ParseFromString(AllBytes(bytes)));
  std::vector<std::string> payloads(request.payload().begin(),
                                    request.payload().end());
  const std::string* payload = payloads.data();
  wire::ExchangeResponse response;
  absl::MutexLock lock(&mu_);
  run_ids_.insert(request.header().run_id());
  incarnations_.insert(request.header().worker_incarnation());
  for (const wire::Operation& operation : request.header().operation()) {
    if (!Do(operation, payload, response)) {
      return {.reply = "", .end_stream = true};
    }
  }
  if (response.header().result().empty()) {
    return {.reply = "", .answer = false};
  }
  return {.reply = response.SerializeAsString()};
}

}  // namespace parasol
