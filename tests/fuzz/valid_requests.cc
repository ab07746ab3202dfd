#include "tests/fuzz/valid_requests.h"

#include <cstring>

#include "absl/types/span.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

wire::Operation& Add(wire::ExchangeRequest& request) {
  wire::Operation& operation = *request.mutable_header()->add_operation();
  operation.set_id(request.header().operation_size());
  return operation;
}

wire::ExchangeRequest RequestOf(const char* run) {
  wire::ExchangeRequest request;
  request.mutable_header()->set_run_id(run);
  request.mutable_header()->set_worker_incarnation(7);
  return request;
}

void AddIds(wire::ExchangeRequest& request, absl::Span<const uint64_t> ids) {
  request.add_payload(reinterpret_cast<const char*>(ids.data()),
                      ids.size() * sizeof(uint64_t));
}

size_t BytesPerElement(wire::Encoding encoding) {
  return encoding == wire::FLOAT32 ? sizeof(float) : sizeof(uint16_t);
}

// Elements that are small numbers in every encoding.
std::string Elements(size_t count, wire::Encoding encoding) {
  return std::string(count * BytesPerElement(encoding), '\2');
}

wire::Push& AddPush(wire::ExchangeRequest& request, uint64_t sequence,
                    wire::Encoding encoding) {
  wire::Push& push = *Add(request).mutable_push();
  push.set_sequence(sequence);
  push.set_encoding(encoding);
  AddRange(push.mutable_range(), kSmallPart, 0, kSmallElements);
  request.add_payload(Elements(kSmallElements, encoding));
  return push;
}

wire::Pull& AddPull(wire::ExchangeRequest& request, wire::Encoding encoding) {
  wire::Pull& pull = *Add(request).mutable_pull();
  pull.set_encoding(encoding);
  AddRange(pull.mutable_range(), kSmallPart, 0, kSmallElements);
  return pull;
}

wire::RowPush& AddRowPush(wire::ExchangeRequest& request, uint64_t sequence,
                          wire::Encoding encoding) {
  wire::RowPush& push = *Add(request).mutable_row_push();
  push.set_sequence(sequence);
  push.set_encoding(encoding);
  push.set_rows(3);
  AddIds(request, {2, 1, 2});
  request.add_payload(Elements(3 * kTableWidth, encoding));
  return push;
}

wire::RowPull& AddRowPull(wire::ExchangeRequest& request,
                          wire::Encoding encoding) {
  wire::RowPull& pull = *Add(request).mutable_row_pull();
  pull.set_encoding(encoding);
  pull.set_rows(2);
  AddIds(request, {1, UINT64_MAX});
  return pull;
}

// The second chunk of the large variable, and the small one.
wire::ExchangeRequest PushOfTwoVariables() {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  wire::Push& push = AddPush(request, 1, wire::FLOAT32);
  AddRange(push.mutable_range(), kLargePart, kChunkElements, 3);
  request.add_payload(Elements(3, wire::FLOAT32));
  return request;
}

// A whole chunk's gradient is in memory that both see.
wire::ExchangeRequest PushInSharedMemory(uint64_t sequence) {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  wire::Push& push = *Add(request).mutable_push();
  push.set_sequence(sequence);
  AddRange(push.mutable_range(), kLargePart, 0, kChunkElements);
  AddRowPull(request, wire::FLOAT32);
  wire::SharedPayload& shared = *request.mutable_header()->add_shared_payload();
  shared.set_bytes(kSharedBytes);
  shared.add_block(0);
  return request;
}

wire::ExchangeRequest PullOfAChunk() {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  wire::Pull& pull = AddPull(request, wire::FLOAT32);
  AddRange(pull.mutable_range(), kLargePart, 0, kChunkElements);
  return request;
}

// Two elements of a chunk of 65,536.
wire::ExchangeRequest SparsifiedPush(uint64_t sequence,
                                     wire::Encoding encoding) {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  wire::Push& push = *Add(request).mutable_push();
  push.set_sequence(sequence);
  push.set_encoding(encoding);
  AddRange(push.mutable_range(), kLargePart, 0, kChunkElements);
  push.add_kept(2);
  constexpr uint32_t kOffsets[] = {5, kChunkElements - 1};
  std::string payload(sizeof(kOffsets), '\0');
  std::memcpy(payload.data(), kOffsets, sizeof(kOffsets));
  request.add_payload(payload + Elements(2, encoding));
  return request;
}

// Everything that an asynchronous ps takes, in one message.
wire::ExchangeRequest Several(uint64_t first_sequence,
                              wire::Encoding encoding) {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  AddPull(request, encoding);
  AddPush(request, first_sequence, encoding);
  AddRowPull(request, encoding);
  AddRowPush(request, first_sequence + 1, encoding);
  AddPull(request, encoding);
  return request;
}

wire::ExchangeRequest PushPulls(uint64_t first_sequence,
                                wire::Encoding encoding) {
  wire::ExchangeRequest request = RequestOf(kAsynchronousRun);
  request.mutable_header()->set_more(true);
  AddPush(request, first_sequence, encoding).set_with_values(true);
  AddRowPush(request, first_sequence + 1, encoding).set_with_values(true);
  return request;
}

void SetStep(wire::SyncStep& sync, int64_t step, int replica) {
  sync.set_step(step);
  sync.set_replica(replica);
}

// Two replicas complete a step of a variable and of a table; what asks for its
// values comes first, and waits.
wire::ExchangeRequest WholeStep(int64_t step, wire::Encoding encoding) {
  wire::ExchangeRequest request = RequestOf(kSynchronousRun);
  AddPull(request, encoding).set_min_updates(step + 1);
  AddRowPull(request, encoding).set_min_updates(step + 1);
  for (int replica = 0; replica < kReplicasToAggregate; ++replica) {
    SetStep(*AddPush(request, 0, encoding).mutable_sync(), step, replica);
    SetStep(*AddRowPush(request, 0, encoding).mutable_sync(), step, replica);
  }
  return request;
}

// A gradient that waits for another replica's, and who waits for both.
wire::ExchangeRequest HalfAStep(int64_t step, int replica) {
  wire::ExchangeRequest request = RequestOf(kSynchronousRun);
  SetStep(*AddPush(request, 0, wire::FLOAT32).mutable_sync(), step, replica);
  SetStep(*AddRowPush(request, 0, wire::BFLOAT16).mutable_sync(), step,
          replica);
  AddRowPull(request, wire::FLOAT32).set_min_updates(step + 1);
  AddPull(request, wire::FLOAT16).set_min_updates(step + 1);
  return request;
}

}  // namespace

void AddRange(google::protobuf::RepeatedPtrField<wire::TensorRange>* ranges,
              uint32_t part, uint64_t first, uint64_t count) {
  wire::TensorRange& range = *ranges->Add();
  range.set_part(part);
  range.set_first(first);
  range.set_count(count);
}

std::vector<wire::ExchangeRequest> ValidExchangeRequests() {
  return {PushOfTwoVariables(),
          PullOfAChunk(),
          SparsifiedPush(2, wire::FLOAT32),
          SparsifiedPush(3, wire::FLOAT16),
          SparsifiedPush(4, wire::BFLOAT16),
          Several(5, wire::FLOAT32),
          Several(7, wire::FLOAT16),
          Several(9, wire::BFLOAT16),
          PushPulls(13, wire::FLOAT32),
          PushPulls(15, wire::BFLOAT16),
          WholeStep(0, wire::FLOAT32),
          WholeStep(1, wire::FLOAT16),
          WholeStep(2, wire::BFLOAT16),
          HalfAStep(3, 1),
          HalfAStep(3, 0),
          PushInSharedMemory(11)};
}

}  // namespace parasol
