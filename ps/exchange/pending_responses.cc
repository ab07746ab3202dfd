#include "ps/exchange/pending_responses.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

// Limit on the bytes of one result's error message; the header of a message of
// results must stay within kMaxHeaderBytes.
constexpr size_t kMaxErrorBytes = 512;

// Returns the message, cut between characters: protobuf refuses the whole
// message if a string is not UTF-8.
absl::string_view Shortened(absl::string_view message) {
  if (message.size() <= kMaxErrorBytes) return message;
  size_t end = kMaxErrorBytes;
  const auto continues = [](char c) { return (c & 0xC0) == 0x80; };
  while (end > 0 && continues(message[end])) --end;
  return message.substr(0, end);
}

wire::Result ToWire(uint64_t operation_id,
                    const absl::StatusOr<OperationResult>& result) {
  wire::Result wire;
  wire.set_id(operation_id);
  if (!result.ok()) {
    wire.set_code(static_cast<int>(result.status().code()));
    wire.set_message(std::string(Shortened(result.status().message())));
    return wire;
  }
  wire.set_duplicate(result->duplicate);
  wire.set_stale(result->stale);
  wire.set_min_updates(result->min_updates);
  wire.set_max_updates(result->max_updates);
  uint64_t bytes = 0;
  for (const PayloadRef& payload : result->payloads) bytes += payload.size;
  wire.set_payload_bytes(bytes);
  return wire;
}

}  // namespace

void PendingResponses::Add(uint64_t operation_id,
                           absl::StatusOr<OperationResult> result) {
  Waiting& added = waiting_.emplace_back();
  added.result = ToWire(operation_id, result);
  if (result.ok()) added.payloads = std::move(result->payloads);
  payload_bytes_ += added.result.payload_bytes();
}

PendingResponses::Message PendingResponses::Take() {
  memory_->Reset();
  Message message = {.header = &memory_->Make<wire::ResponseHeader>()};
  message.payloads.reserve(results());
  uint64_t bytes = 0;
  size_t count = 0;
  do {
    Waiting& next = waiting_[first_++];
    bytes += next.result.payload_bytes();
    message.header->add_result()->CopyFrom(next.result);
    std::move(next.payloads.begin(), next.payloads.end(),
              std::back_inserter(message.payloads));
    next.payloads.clear();
    ++count;
  } while (results() > 0 && count < kResponseResults &&
           bytes + waiting_[first_].result.payload_bytes() <= kResponseBytes &&
           message.payloads.size() + waiting_[first_].payloads.size() <=
               kMaxRangesPerMessage);
  payload_bytes_ -= bytes;
  // Moves no more results than were taken since the last time.
  if (2 * first_ >= waiting_.size()) {
    waiting_.erase(waiting_.begin(), waiting_.begin() + first_);
    first_ = 0;
  }
  return message;
}

void PendingResponses::Clear() {
  waiting_.clear();
  first_ = 0;
  payload_bytes_ = 0;
}

}  // namespace parasol
