#include "tests/fuzz/exchange_target.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "cluster/rpc/chunk.h"
#include "cluster/rpc/tensor_frame.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/operation_result.h"
#include "ps/received_request.h"

namespace parasol {
namespace {

constexpr char kRun[] = "run";
constexpr int64_t kLargeElements = kChunkElements + 3;
constexpr int64_t kSmallElements = 5;
constexpr uint64_t kMaxPulledBytes = 48 << 20;

void AddPart(wire::LoadRequest& order, const std::string& variable,
             int64_t elements) {
  wire::PartSpec& part = *order.add_part();
  part.set_id(order.part_size() - 1);
  part.set_variable(variable);
  part.add_variable_shape(elements);
  part.set_elements(elements);
  part.mutable_initializer()->mutable_zeros();
}

void AddRange(google::protobuf::RepeatedPtrField<wire::TensorRange>* ranges,
              uint32_t part, uint64_t first, uint64_t count) {
  wire::TensorRange& range = *ranges->Add();
  range.set_part(part);
  range.set_first(first);
  range.set_count(count);
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

}  // namespace

ExchangeTarget::ExchangeTarget()
    : metrics_(registry_), server_({.task = "ps/0"}, clock_, metrics_) {
  wire::LoadRequest order;
  order.set_run_id(kRun);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.5);
  AddPart(order, "w", kLargeElements);
  AddPart(order, "b", kSmallElements);
  order.set_num_shards(1);
  const auto loaded = server_.Load(order);
  CHECK(loaded.ok()) << loaded.status();
  values_ = Values();
}

ExchangeTarget::Outcome ExchangeTarget::Feed(absl::string_view bytes,
                                             size_t piece_bytes) {
  Outcome outcome;
  wire::RequestHeader header;
  absl::StatusOr<ReceivedFrame> frame = ReceivedFrame::Parse(
      Pieces(bytes, piece_bytes), kMaxRangesPerMessage, &header);
  if (!frame.ok()) return outcome;
  const absl::StatusOr<ReceivedRequest> request =
      ReceivedRequest::Create(std::move(header), frame->TakePayloads());
  if (!request.ok()) return outcome;
  outcome.is_request = true;
  bool pushed = false;
  for (size_t i = 0; i < request->size(); ++i) {
    size_t calls = 0;
    server_.Execute(*request, i, [&](absl::StatusOr<OperationResult> result) {
      ++calls;
      ++(result.ok() ? outcome.done : outcome.failed);
      if (!result.ok()) return;
      pushed = pushed || IsPush(request->operation(i));
      uint64_t pulled = 0;
      for (const PayloadRef& payload : result->payloads) pulled += payload.size;
      CHECK_LE(pulled, kMaxPulledBytes);
    });
    CHECK_EQ(calls, 1u) << request->operation(i).ShortDebugString();
  }
  std::string values = Values();
  CHECK(pushed || values == values_) << "changed without a push";
  values_ = std::move(values);
  return outcome;
}

std::string ExchangeTarget::Values() {
  wire::RequestHeader header;
  header.set_run_id(kRun);
  wire::Pull& pull = *header.add_operation()->mutable_pull();
  AddRange(pull.mutable_range(), 0, 0, kLargeElements);
  AddRange(pull.mutable_range(), 1, 0, kSmallElements);
  const auto request = ReceivedRequest::Create(header, {});
  CHECK(request.ok()) << request.status();
  std::string values;
  server_.Execute(*request, 0, [&](absl::StatusOr<OperationResult> result) {
    CHECK(result.ok()) << result.status();
    for (const PayloadRef& payload : result->payloads) {
      values.append(static_cast<const char*>(payload.data), payload.size);
    }
  });
  return values;
}

std::vector<wire::ExchangeRequest> ValidExchangeRequests() {
  std::vector<wire::ExchangeRequest> requests(3);
  for (wire::ExchangeRequest& request : requests) {
    request.mutable_header()->set_run_id(kRun);
    request.mutable_header()->set_worker_incarnation(7);
  }
  // A push of both variables.
  wire::Operation& both = *requests[0].mutable_header()->add_operation();
  both.set_id(1);
  both.mutable_push()->set_sequence(1);
  AddRange(both.mutable_push()->mutable_range(), 1, 0, kSmallElements);
  AddRange(both.mutable_push()->mutable_range(), 0, kChunkElements, 3);
  requests[0].add_payload(std::string(kSmallElements * sizeof(float), '\1'));
  requests[0].add_payload(std::string(3 * sizeof(float), '\2'));
  // A pull of a chunk.
  wire::Operation& chunk = *requests[1].mutable_header()->add_operation();
  chunk.set_id(2);
  AddRange(chunk.mutable_pull()->mutable_range(), 0, 0, kChunkElements);
  // Several in one message.
  wire::RequestHeader& several = *requests[2].mutable_header();
  for (int i = 0; i < 4; ++i) {
    wire::Operation& operation = *several.add_operation();
    operation.set_id(10 + i);
    if (i % 2 == 0) {
      AddRange(operation.mutable_pull()->mutable_range(), 1, 0, kSmallElements);
      continue;
    }
    operation.mutable_push()->set_sequence(10 + i);
    AddRange(operation.mutable_push()->mutable_range(), 1, 0, kSmallElements);
    requests[2].add_payload(std::string(kSmallElements * sizeof(float), '\3'));
  }
  return requests;
}

}  // namespace parasol
