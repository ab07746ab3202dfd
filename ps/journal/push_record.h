#ifndef PARASOL_PS_JOURNAL_PUSH_RECORD_H_
#define PARASOL_PS_JOURNAL_PUSH_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"

namespace parasol {

// A push as it was received.
struct ReceivedPush {
  uint64_t worker_incarnation = 0;
  const wire::Operation& operation;
  absl::Span<const PayloadView> payloads;
  uint64_t acknowledged = 0;  // ReceivedMessage::acknowledged()
  // The memory of `payloads`; null: it can't be kept.
  PayloadMemory* memory = nullptr;
};

// The record of a push in a journal: storage/FORMAT.md, "Journal".
class PushRecord {
 public:
  // Borrows the payloads; copies those that a peer can still write to.
  explicit PushRecord(const ReceivedPush& push);
  // Points into itself.
  PushRecord(const PushRecord&) = delete;
  PushRecord& operator=(const PushRecord&) = delete;

  // The record's bytes, one piece behind the other.
  absl::Span<const absl::string_view> pieces() const { return pieces_; }

 private:
  std::string head_;
  std::vector<std::string> copies_;
  std::vector<absl::string_view> pieces_;
};

// Returns the push's record on its way to a standby. Keeps large payloads where
// they are, with their message's memory, of which they are half at least;
// copies all others, and those that a peer can still write to.
FollowRecord RecordToSend(const ReceivedPush& push);

// A push out of a record.
struct RecordedPush {
  uint64_t worker_incarnation = 0;
  uint64_t acknowledged = 0;
  wire::Operation operation;
  std::vector<PayloadView> payloads;  // point into the record
};

//   DataLoss  `record` is none of a push.
absl::StatusOr<RecordedPush> ParsePushRecord(absl::string_view record);
// Parses a record that ends before its payloads, which are the first ones of
// `payloads`; removes them there. Fails in like manner.
absl::StatusOr<RecordedPush> ParsePushHead(
    absl::string_view head, absl::Span<const PayloadView>& payloads);

}  // namespace parasol

#endif  // PARASOL_PS_JOURNAL_PUSH_RECORD_H_
