#include "ps/journal/push_record.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

// The incarnation, what was acknowledged, the operation's bytes, and the number
// of payloads.
constexpr size_t kHeadBytes = 24;

absl::Status NotAPush() {
  return absl::DataLossError("a record of a journal that is no push");
}

}  // namespace

PushRecord::PushRecord(const ReceivedPush& push) {
  const std::string operation = push.operation.SerializeAsString();
  AppendLittleEndian(head_, push.worker_incarnation);
  AppendLittleEndian(head_, push.acknowledged);
  AppendLittleEndian(head_, static_cast<uint32_t>(operation.size()));
  AppendLittleEndian(head_, static_cast<uint32_t>(push.payloads.size()));
  for (const PayloadView& payload : push.payloads) {
    AppendLittleEndian(head_, static_cast<uint32_t>(payload.size()));
  }
  head_ += operation;
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

absl::StatusOr<RecordedPush> ParsePushRecord(absl::string_view record) {
  if (record.size() < kHeadBytes) return NotAPush();
  RecordedPush push;
  push.worker_incarnation = LoadLittleEndian<uint64_t>(record.data());
  push.acknowledged = LoadLittleEndian<uint64_t>(record.data() + 8);
  const auto operation_bytes = LoadLittleEndian<uint32_t>(record.data() + 16);
  const auto payloads = LoadLittleEndian<uint32_t>(record.data() + 20);
  record.remove_prefix(kHeadBytes);
  if (payloads > record.size() / sizeof(uint32_t)) return NotAPush();
  const absl::string_view sizes = record.substr(0, payloads * sizeof(uint32_t));
  record.remove_prefix(sizes.size());
  if (operation_bytes > record.size() ||
      !push.operation.ParseFromArray(record.data(),
                                     static_cast<int>(operation_bytes))) {
    return NotAPush();
  }
  record.remove_prefix(operation_bytes);
  for (uint32_t i = 0; i < payloads; ++i) {
    const auto bytes = LoadLittleEndian<uint32_t>(sizes.data() + 4 * i);
    if (bytes > record.size()) return NotAPush();
    push.payloads.emplace_back(PayloadView::Pieces{record.substr(0, bytes)});
    record.remove_prefix(bytes);
  }
  if (!record.empty()) return NotAPush();
  return push;
}

}  // namespace parasol
