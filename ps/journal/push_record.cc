#include "ps/journal/push_record.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

// The incarnation, what was acknowledged, the operation's bytes, and the number
// of payloads.
constexpr size_t kHeadBytes = 24;

// Payloads of fewer bytes are copied: to keep a message's memory costs more.
constexpr size_t kMinKeptBytes = 16 << 10;

absl::Status NotAPush() {
  return absl::DataLossError("a record of a journal that is no push");
}

// Returns the record's bytes before the payloads.
std::string HeadOf(const ReceivedPush& push) {
  std::string head;
  const size_t operation_bytes = push.operation.ByteSizeLong();
  head.reserve(kHeadBytes + push.payloads.size() * sizeof(uint32_t) +
               operation_bytes);
  AppendLittleEndian(head, push.worker_incarnation);
  AppendLittleEndian(head, push.acknowledged);
  AppendLittleEndian(head, static_cast<uint32_t>(operation_bytes));
  AppendLittleEndian(head, static_cast<uint32_t>(push.payloads.size()));
  for (const PayloadView& payload : push.payloads) {
    AppendLittleEndian(head, static_cast<uint32_t>(payload.size()));
  }
  push.operation.AppendToString(&head);
  return head;
}

// Returns true if the payloads can stay where they are, without much else.
bool MayBeKept(const ReceivedPush& push, size_t payload_bytes) {
  if (push.memory == nullptr || payload_bytes < kMinKeptBytes ||
      payload_bytes < push.memory->bytes() / 2) {
    return false;
  }
  return std::all_of(push.payloads.begin(), push.payloads.end(),
                     [](const PayloadView& payload) {
                       return !payload.may_change() &&
                              payload.pieces().size() <= 1;
                     });
}

// A record's head: the push without its payloads, their sizes, and the bytes
// that follow it.
struct ParsedHead {
  RecordedPush push;
  absl::string_view sizes;  // 4 bytes for each payload
  absl::string_view rest;

  size_t payloads() const { return sizes.size() / sizeof(uint32_t); }
  size_t size(size_t payload) const {
    return LoadLittleEndian<uint32_t>(sizes.data() + 4 * payload);
  }
};

absl::StatusOr<ParsedHead> ParseHead(absl::string_view record) {
  if (record.size() < kHeadBytes) return NotAPush();
  ParsedHead head;
  RecordedPush& push = head.push;
  push.worker_incarnation = LoadLittleEndian<uint64_t>(record.data());
  push.acknowledged = LoadLittleEndian<uint64_t>(record.data() + 8);
  const auto operation_bytes = LoadLittleEndian<uint32_t>(record.data() + 16);
  const auto payloads = LoadLittleEndian<uint32_t>(record.data() + 20);
  record.remove_prefix(kHeadBytes);
  if (payloads > record.size() / sizeof(uint32_t)) return NotAPush();
  head.sizes = record.substr(0, payloads * sizeof(uint32_t));
  record.remove_prefix(head.sizes.size());
  if (operation_bytes > record.size() ||
      !push.operation.ParseFromArray(record.data(),
                                     static_cast<int>(operation_bytes))) {
    return NotAPush();
  }
  head.rest = record.substr(operation_bytes);
  push.payloads.reserve(payloads);
  return head;
}

}  // namespace

PushRecord::PushRecord(const ReceivedPush& push) : head_(HeadOf(push)) {
  pieces_.emplace_back();
  copies_.reserve(push.payloads.size());
  for (const PayloadView& payload : push.payloads) {
    if (payload.may_change()) {
      std::string& copy = copies_.emplace_back(payload.size(), '\0');
      payload.CopyTo(0, payload.size(), copy.data());
      pieces_.push_back(copy);
    } else {
      pieces_.insert(pieces_.end(), payload.pieces().begin(),
                     payload.pieces().end());
    }
  }
  pieces_.front() = head_;
}

FollowRecord RecordToSend(const ReceivedPush& push) {
  FollowRecord record = {.head = HeadOf(push), .tensors = {}};
  size_t bytes = 0;
  for (const PayloadView& payload : push.payloads) bytes += payload.size();
  std::shared_ptr<const void> memory;
  std::shared_ptr<char[]> copies;
  if (MayBeKept(push, bytes)) {
    memory = push.memory->Keep();
  } else {
    copies = std::make_shared_for_overwrite<char[]>(bytes);
  }
  size_t copied = 0;
  for (const PayloadView& payload : push.payloads) {
    PayloadRef tensor = {.size = payload.size(), .owner = memory};
    if (memory != nullptr) {
      if (tensor.size > 0) tensor.data = payload.pieces().front().data();
    } else {
      payload.CopyTo(0, payload.size(), copies.get() + copied);
      tensor.data = copies.get() + copied;
      tensor.owner = copies;
      copied += payload.size();
    }
    record.tensors.push_back(std::move(tensor));
  }
  return record;
}

absl::StatusOr<RecordedPush> ParsePushRecord(absl::string_view record) {
  ASSIGN_OR_RETURN(ParsedHead head, ParseHead(record));
  absl::string_view rest = head.rest;
  for (size_t i = 0; i < head.payloads(); ++i) {
    const size_t bytes = head.size(i);
    if (bytes > rest.size()) return NotAPush();
    head.push.payloads.emplace_back(PayloadView::Pieces{rest.substr(0, bytes)});
    rest.remove_prefix(bytes);
  }
  if (!rest.empty()) return NotAPush();
  return std::move(head.push);
}

absl::StatusOr<RecordedPush> ParsePushHead(
    absl::string_view record, absl::Span<const PayloadView>& payloads) {
  ASSIGN_OR_RETURN(ParsedHead head, ParseHead(record));
  if (!head.rest.empty() || head.payloads() > payloads.size()) {
    return NotAPush();
  }
  for (size_t i = 0; i < head.payloads(); ++i) {
    if (payloads[i].size() != head.size(i)) return NotAPush();
    head.push.payloads.push_back(payloads[i]);
  }
  payloads.remove_prefix(head.payloads());
  return std::move(head.push);
}

}  // namespace parasol
