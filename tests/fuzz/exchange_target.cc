#include "tests/fuzz/exchange_target.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "cluster/rpc/library_log.h"
#include "cluster/rpc/protocol_limits.h"
#include "cluster/rpc/tensor_frame.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/operation/operation.h"
#include "tests/fuzz/valid_requests.h"

namespace parasol {
namespace {

constexpr uint64_t kMemoryLimit = 32 << 20;
// Operations that wait, of all messages.
constexpr size_t kMaxWaiting = 128;

void AddPart(wire::LoadRequest& order, const std::string& variable,
             int64_t elements) {
  wire::PartSpec& part = *order.add_part();
  part.set_id(order.part_size() - 1);
  part.set_variable(variable);
  part.add_variable_shape(elements);
  part.set_elements(elements);
  part.mutable_initializer()->mutable_zeros();
}

wire::TableSpec& AddTable(wire::LoadRequest& order, const std::string& name,
                          uint32_t width) {
  wire::TableSpec& table = *order.add_table();
  table.set_id(order.table_size() - 1);
  table.set_name(name);
  table.set_width(width);
  table.mutable_initializer()->mutable_random_uniform();
  return table;
}

wire::LoadRequest OrderOf(const char* run) {
  wire::LoadRequest order;
  order.set_run_id(run);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5);
  AddPart(order, "w", kLargeElements);
  AddPart(order, "b", kSmallElements);
  AddTable(order, "rows", kTableWidth);
  AddTable(order, "others", 1).mutable_optimizer()->mutable_adam();
  order.set_num_shards(1);
  return order;
}

grpc::ByteBuffer Pieces(absl::string_view bytes, size_t piece_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t first = 0; first < bytes.size(); first += piece_bytes) {
    const absl::string_view piece = bytes.substr(first, piece_bytes);
    slices.emplace_back(piece.data(), piece.size());
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

bool IsPush(const wire::Operation& operation) {
  return operation.has_push() || operation.has_row_push();
}

// Returns the number of bytes that a pull has returned.
uint64_t PulledBytes(const OperationResult& result) {
  uint64_t bytes = 0;
  for (const PayloadRef& payload : result.payloads) bytes += payload.size;
  return bytes;
}

constexpr uint64_t kPulledIds[] = {1, 2, UINT64_MAX};

// Pulls of all dense variables and of the rows that the valid messages name.
wire::RequestHeader PullOfAll(absl::string_view run) {
  wire::RequestHeader header;
  header.set_run_id(std::string(run));
  for (const auto& [part, elements] : {std::pair(kLargePart, kLargeElements),
                                       std::pair(kSmallPart, kSmallElements)}) {
    AddRange(header.add_operation()->mutable_pull()->mutable_range(), part, 0,
             elements);
  }
  for (const uint32_t table : {0, 1}) {
    wire::RowPull& rows = *header.add_operation()->mutable_row_pull();
    rows.set_table(table);
    rows.set_rows(std::size(kPulledIds));
  }
  return header;
}

// The values and how many updates they have had.
std::string StateOf(ParameterServer& server, absl::string_view run) {
  const wire::RequestHeader header = PullOfAll(run);
  const PayloadView ids({absl::string_view(
      reinterpret_cast<const char*>(kPulledIds), sizeof(kPulledIds))});
  const absl::StatusOr<ReceivedMessage> request =
      ReceivedMessage::Create(header, {ids, ids});
  CHECK(request.ok()) << request.status();
  std::string state;
  for (size_t i = 0; i < request->size(); ++i) {
    server.Execute(*request, i, [&](absl::StatusOr<OperationResult> result) {
      CHECK(result.ok()) << result.status();
      for (const int64_t updates : {result->min_updates, result->max_updates}) {
        state.append(reinterpret_cast<const char*>(&updates), sizeof(updates));
      }
      for (const PayloadRef& payload : result->payloads) {
        state.append(static_cast<const char*>(payload.data), payload.size);
      }
    });
  }
  return state;
}

}  // namespace

ExchangeTarget::Ps::Ps(const wire::LoadRequest& order)
    : run(order.run_id()),
      metrics(registry),
      server({.task = "ps/0", .memory_limit_bytes = kMemoryLimit}, clock,
             metrics) {
  const auto loaded = server.Load(order);
  CHECK(loaded.ok()) << loaded.status();
  state = StateOf(server, run);
}

ExchangeTarget::ExchangeTarget() {
  QuietLibraryLog();
  asynchronous_ = std::make_unique<Ps>(OrderOf(kAsynchronousRun));
  absl::StatusOr<std::unique_ptr<SharedPayloads>> worker =
      SharedPayloads::Create();
  CHECK(worker.ok()) << worker.status();
  absl::StatusOr<std::unique_ptr<SharedPayloads>> ps =
      SharedPayloads::Open((*worker)->offer());
  CHECK(ps.ok()) << ps.status();
  shared_worker_ = *std::move(worker);
  shared_ps_ = *std::move(ps);
  BeginAnew();
}

ExchangeTarget::~ExchangeTarget() { GiveUp(); }

void ExchangeTarget::BeginAnew() {
  GiveUp();
  wire::LoadRequest order = OrderOf(kSynchronousRun);
  order.mutable_sync()->set_replicas_to_aggregate(kReplicasToAggregate);
  order.mutable_sync()->set_total_replicas(kTotalReplicas);
  synchronous_ = std::make_unique<Ps>(order);
}

void ExchangeTarget::GiveUp() {
  synchronous_.reset();
  for (const std::shared_ptr<Answer>& answer : waiting_) {
    CHECK_EQ(answer->calls, 1u) << "given up";
  }
  waiting_.clear();
}

// As a worker that has filled the first blocks, whatever the message names.
void ExchangeTarget::FillSharedMemory() {
  static const std::vector<float> gradient(kSharedBytes / sizeof(float), 1);
  std::vector<PayloadRef> payloads = {{gradient.data(), kSharedBytes, nullptr}};
  google::protobuf::RepeatedPtrField<wire::SharedPayload> shared;
  shared_worker_->Send(payloads, shared);
}

ExchangeTarget::Outcome ExchangeTarget::Feed(absl::string_view bytes,
                                             size_t piece_bytes) {
  wire::RequestHeader header;
  absl::StatusOr<ReceivedFrame> frame = ReceivedFrame::Parse(
      Pieces(bytes, piece_bytes), kMaxRangesPerMessage, &header);
  if (!frame.ok()) return {};
  std::vector<PayloadView> payloads = frame->TakePayloads();
  FillSharedMemory();
  const absl::StatusOr<SharedPayloads::Hold> hold =
      shared_ps_->Receive(header.shared_payload(), payloads);
  if (!hold.ok()) return {};
  const absl::StatusOr<ReceivedMessage> request =
      ReceivedMessage::Create(header, std::move(payloads));
  if (!request.ok()) return {};
  Outcome outcome{.is_request = true};
  Ps& ps =
      request->run_id() == kSynchronousRun ? *synchronous_ : *asynchronous_;
  std::vector<std::shared_ptr<Answer>> answers;
  for (size_t i = 0; i < request->size(); ++i) {
    answers.push_back(Execute(ps, *request, i));
  }
  for (const std::shared_ptr<Answer>& answer : answers) {
    if (answer->calls == 0) {
      ++outcome.waiting;
      waiting_.push_back(answer);
    } else {
      ++(answer->is_error ? outcome.failed : outcome.done);
    }
  }
  if (waiting_.size() > kMaxWaiting) BeginAnew();
  return outcome;
}

std::shared_ptr<ExchangeTarget::Answer> ExchangeTarget::Execute(
    Ps& ps, const ReceivedMessage& request, size_t operation) {
  const auto answer = std::make_shared<Answer>();
  ps.server.Execute(request, operation,
                    [answer](absl::StatusOr<OperationResult> result) {
                      CHECK_EQ(++answer->calls, 1u);
                      if (result.ok() && result->read != nullptr)
                        result = result->read();
                      answer->is_error = !result.ok();
                      if (result.ok())
                        CHECK_LE(PulledBytes(*result), kMaxPullBytes);
                    });
  const wire::Operation& order = request.operation(operation);
  std::string state = StateOf(ps.server, ps.run);
  CHECK((IsPush(order) && !answer->is_error) || state == ps.state)
      << "changed by " << order.ShortDebugString();
  ps.state = std::move(state);
  CHECK_LE(ps.metrics.row_bytes.value(), 2 * kMemoryLimit);
  return answer;
}

}  // namespace parasol
