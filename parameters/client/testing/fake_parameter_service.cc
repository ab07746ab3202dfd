#include "parameters/client/testing/fake_parameter_service.h"

#include <cstring>
#include <deque>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "grpcpp/support/server_callback.h"
#include "ml/compression/half.h"

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

job::Encoding AsJob(wire::Encoding encoding) {
  return static_cast<job::Encoding>(encoding);
}

std::vector<float> Decoded(wire::Encoding encoding, size_t count,
                           const std::string& bytes) {
  CHECK_EQ(bytes.size(), EncodedBytes(AsJob(encoding), count));
  std::vector<float> values(count);
  Decode(AsJob(encoding), reinterpret_cast<const std::byte*>(bytes.data()),
         absl::MakeSpan(values));
  return values;
}

std::string Encoded(wire::Encoding encoding, absl::Span<const float> values) {
  std::string bytes(EncodedBytes(AsJob(encoding), values.size()), 0);
  Encode(AsJob(encoding), values, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes;
}

std::vector<uint64_t> Ids(size_t count, const std::string& bytes) {
  CHECK_EQ(bytes.size(), count * sizeof(uint64_t));
  std::vector<uint64_t> ids(count);
  if (count > 0) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

// A ps may cut a result anywhere: this one does, inside an element.
void AddCut(const std::string& bytes, wire::ExchangeResponse& response,
            wire::Result& result) {
  const size_t cut = bytes.size() / 2 + 1;
  response.add_payload(bytes.substr(0, cut));
  response.add_payload(bytes.substr(cut));
  result.set_payload_bytes(result.payload_bytes() + bytes.size());
}

int PayloadsOf(const wire::Operation& operation) {
  switch (operation.kind_case()) {
    case wire::Operation::kPush:
      return operation.push().range_size();
    case wire::Operation::kRowPush:
      return 2;
    case wire::Operation::kRowPull:
      return 1;
    default:
      return 0;
  }
}

// 0: it has none.
uint64_t SequenceOf(const wire::Operation& operation) {
  return operation.has_row_push() ? operation.row_push().sequence()
                                  : operation.push().sequence();
}

// Returns the pull that a push-pull stands for.
wire::Pull PullBehind(const wire::Push& push) {
  wire::Pull pull;
  *pull.mutable_range() = push.range();
  pull.set_encoding(push.encoding());
  return pull;
}

wire::RowPull PullBehind(const wire::RowPush& push) {
  wire::RowPull pull;
  pull.set_table(push.table());
  pull.set_rows(push.rows());
  pull.set_encoding(push.encoding());
  return pull;
}

}  // namespace

// One stream; deletes itself.
class FakeParameterService::Reactor
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit Reactor(FakeParameterService& fake) : fake_(fake) {
    // Without an answer to a request for a lane: there are none here.
    StartSendInitialMetadata();
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

void FakeParameterService::AddTable(uint32_t table, size_t width) {
  absl::MutexLock lock(&mu_);
  tables_[table].width = width;
}

int FakeParameterService::TablePushes(uint32_t table) {
  absl::MutexLock lock(&mu_);
  return tables_[table].pushes;
}

void FakeParameterService::SetUpdates(int64_t min_updates, int64_t max_updates,
                                      bool stale) {
  absl::MutexLock lock(&mu_);
  updates_.set_min_updates(min_updates);
  updates_.set_max_updates(max_updates);
  updates_.set_stale(stale);
}

std::vector<int> FakeParameterService::MessageSizes() {
  absl::MutexLock lock(&mu_);
  return message_sizes_;
}

std::vector<std::pair<int64_t, int>> FakeParameterService::SyncSteps() {
  absl::MutexLock lock(&mu_);
  return sync_steps_;
}

std::vector<int64_t> FakeParameterService::PulledMinUpdates() {
  absl::MutexLock lock(&mu_);
  return min_updates_;
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

std::set<uint64_t> FakeParameterService::Layouts() {
  absl::MutexLock lock(&mu_);
  return layouts_;
}

std::set<uint64_t> FakeParameterService::PsIncarnations() {
  absl::MutexLock lock(&mu_);
  return ps_incarnations_;
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

template <typename Push>
bool FakeParameterService::Claim(const Push& push, wire::Result& result) {
  if (push.has_sync()) {
    CHECK_EQ(push.sequence(), 0u);
    sync_steps_.emplace_back(push.sync().step(), push.sync().replica());
    return true;
  }
  const bool is_new = applied_.insert(push.sequence()).second;
  result.set_duplicate(!is_new);
  return is_new;
}

void FakeParameterService::Apply(const wire::Push& push,
                                 const std::string* payload) {
  CHECK(push.kept().empty() || push.kept_size() == push.range_size());
  for (int i = 0; i < push.range_size(); ++i) {
    const wire::TensorRange& range = push.range(i);
    std::vector<float>& values = values_[range.part()];
    CHECK_LE(range.first() + range.count(), values.size());
    if (push.kept().empty()) {
      const std::vector<float> gradient =
          Decoded(push.encoding(), range.count(), payload[i]);
      for (size_t j = 0; j < gradient.size(); ++j) {
        values[range.first() + j] -= gradient[j];
      }
      continue;
    }
    std::vector<uint32_t> offsets(push.kept(i));
    const size_t bytes = offsets.size() * sizeof(uint32_t);
    CHECK_LE(bytes, payload[i].size());
    std::memcpy(offsets.data(), payload[i].data(), bytes);
    const std::vector<float> gradient =
        Decoded(push.encoding(), offsets.size(), payload[i].substr(bytes));
    for (size_t j = 0; j < offsets.size(); ++j) {
      CHECK_LT(offsets[j], range.count());
      values[range.first() + offsets[j]] -= gradient[j];
    }
  }
}

void FakeParameterService::Apply(const wire::RowPush& push,
                                 const std::string* payload) {
  Table& table = tables_[push.table()];
  ++table.pushes;
  const std::vector<uint64_t> ids = Ids(push.rows(), payload[0]);
  const std::vector<float> gradients =
      Decoded(push.encoding(), push.rows() * table.width, payload[1]);
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<float>& row = table.rows[ids[i]];
    row.resize(table.width);
    for (size_t j = 0; j < table.width; ++j) {
      row[j] -= gradients[i * table.width + j];
    }
  }
}

void FakeParameterService::Read(const wire::Pull& pull,
                                wire::ExchangeResponse& response,
                                wire::Result& result) {
  min_updates_.push_back(pull.min_updates());
  for (const wire::TensorRange& range : pull.range()) {
    const std::vector<float>& values = values_[range.part()];
    CHECK_LE(range.first() + range.count(), values.size());
    AddCut(Encoded(pull.encoding(),
                   {values.data() + range.first(), range.count()}),
           response, result);
  }
}

void FakeParameterService::Read(const wire::RowPull& pull,
                                const std::string& ids,
                                wire::ExchangeResponse& response,
                                wire::Result& result) {
  min_updates_.push_back(pull.min_updates());
  Table& table = tables_[pull.table()];
  for (const uint64_t id : Ids(pull.rows(), ids)) {
    std::vector<float>& row = table.rows[id];
    row.resize(table.width);
    AddCut(Encoded(pull.encoding(), row), response, result);
  }
}

bool FakeParameterService::Do(const wire::Operation& operation,
                              const std::string*& payload,
                              wire::ExchangeResponse& response) {
  ++requests_;
  const std::string* const payloads = payload;
  payload += PayloadsOf(operation);
  const uint64_t sequence = SequenceOf(operation);
  if (sequence != 0) Note(sequence);
  const Fault fault = fault_ ? fault_(operation) : Fault::kNone;
  if (fault == Fault::kBreakBefore) return false;
  wire::Result result = updates_;
  result.set_id(operation.id());
  if (fault == Fault::kUnavailable || fault == Fault::kOtherRun) {
    result.set_code(static_cast<int>(
        fault == Fault::kUnavailable ? absl::StatusCode::kUnavailable
                                     : absl::StatusCode::kFailedPrecondition));
    result.set_message("not now");
    *response.mutable_header()->add_result() = result;
    return true;
  }
  wire::ExchangeResponse own;
  if (operation.has_push()) {
    const wire::Push& push = operation.push();
    if (Claim(push, result)) Apply(push, payloads);
    if (push.with_values() && fault != Fault::kNoValues) {
      Read(PullBehind(push), own, result);
    }
  } else if (operation.has_row_push()) {
    const wire::RowPush& push = operation.row_push();
    if (Claim(push, result)) Apply(push, payloads);
    if (push.with_values()) Read(PullBehind(push), payloads[0], own, result);
  } else if (operation.has_row_pull()) {
    Read(operation.row_pull(), payloads[0], own, result);
  } else {
    Read(operation.pull(), own, result);
  }
  if (fault == Fault::kBreakAfter) return false;
  if (fault == Fault::kDropReply) return true;
  if (fault == Fault::kShortReply) own.mutable_payload()->RemoveLast();
  if (fault == Fault::kWrongSizes) {
    for (const std::string& payload : own.payload()) {
      response.mutable_header()->add_payload_size(payload.size() + 1);
    }
  }
  if (sequence != 0) answered_.insert(sequence);
  *own.mutable_header()->add_result() = result;
  response.MergeFrom(own);
  return true;
}

FakeParameterService::Outcome FakeParameterService::Handle(
    const grpc::ByteBuffer& bytes) {
  wire::ExchangeRequest request;
  CHECK(request.ParseFromString(AllBytes(bytes)));
  const std::vector<std::string> payloads(request.payload().begin(),
                                          request.payload().end());
  const std::string* payload = payloads.data();
  wire::ExchangeResponse response;
  absl::MutexLock lock(&mu_);
  run_ids_.insert(request.header().run_id());
  incarnations_.insert(request.header().worker_incarnation());
  layouts_.insert(request.header().layout());
  ps_incarnations_.insert(request.header().ps_incarnation());
  message_sizes_.push_back(request.header().operation_size());
  for (const wire::Operation& operation : request.header().operation()) {
    if (!Do(operation, payload, response)) {
      return {.reply = "", .end_stream = true};
    }
  }
  CHECK_EQ(payload - payloads.data(), request.payload_size());
  if (response.header().result().empty()) {
    return {.reply = "", .answer = false};
  }
  return {.reply = response.SerializeAsString()};
}

}  // namespace parasol
