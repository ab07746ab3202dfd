#ifndef PARASOL_PS_JOURNAL_PUSH_RECORD_H_
#define PARASOL_PS_JOURNAL_PUSH_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"

namespace parasol {

// A push as it was received.
struct ReceivedPush {
  uint64_t worker_incarnation = 0;
  const wire::Operation& operation;
  absl::Span<const PayloadView> payloads;
  uint64_t acknowledged = 0;  // ReceivedMessage::acknowledged()
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

// A push out of a record.
struct RecordedPush {
  uint64_t worker_incarnation = 0;
  uint64_t acknowledged = 0;
  wire::Operation operation;
  std::vector<PayloadView> payloads;  // point into the record
};

//   DataLoss  `record` is none of a push.
absl::StatusOr<RecordedPush> ParsePushRecord(absl::string_view record);

}  // namespace parasol

#endif  // PARASOL_PS_JOURNAL_PUSH_RECORD_H_
