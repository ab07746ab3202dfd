#ifndef PARASOL_PS_JOURNAL_PUSH_JOURNAL_H_
#define PARASOL_PS_JOURNAL_PUSH_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "ps/journal/push_record.h"
#include "storage/journal/journal_writer.h"
#include "storage/shard_index.h"

namespace parasol {

// The last record of a journal that a copy of its shard may have.
struct JournalEnd {
  uint64_t journal = 0;  // 0: the shard has no journal
  uint64_t record = 0;
};

// The pushes that a shard has taken, in the order in which it took them.
//
// A reader takes more than a checkpoint lacks: a shard recognises what it has,
// by the windows of sequences, or by the numbers of updates in synchronous
// training. So a checkpoint need not name the exact record at which it was cut,
// only a segment from which on nothing is missing. Thread-safe.
class PushJournal {
 public:
  // The segments that are there, and the updates that the shard had at most
  // when they were begun; the last one is the writer's.
  struct Segment {
    uint64_t number = 0;
    int64_t progress = 0;
  };
  PushJournal(std::unique_ptr<JournalWriter> writer,
              std::vector<Segment> segments);

  // Appends the push, then calls `apply` with the number of its record; no
  // other push is appended or applied meanwhile. If `apply` refuses the push,
  // it does so again when it is read.
  //   Unavailable  it was not appended, and `apply` not called.
  absl::Status AppendAndApply(const ReceivedPush& push,
                              absl::FunctionRef<void(uint64_t)> apply)
      ABSL_LOCKS_EXCLUDED(order_mu_);

  // Closes the writer: JournalWriter::Close().
  void Close() { writer_->Close(); }
  void WhenKept(JournalWriter::Done done) {
    writer_->WhenKept(std::move(done));
  }
  bool keeps_at_once() const { return writer_->keeps_at_once(); }
  // The journal, and its last record.
  JournalEnd end() const {
    return {.journal = writer_->journal(), .record = writer_->last_record()};
  }
  // Returns when all records so far are kept: JournalWriter::Flush().
  absl::Status Flush() { return writer_->Flush(); }

  // Begins a segment, and waits until it is kept, while pushes go on. Returns
  // the place from which on pushes may be missing in a cut that is
  // taken after the call; in synchronous training one at `updates`. `progress`:
  // the updates that the shard has had at most.
  JournalPlace BeginCut(int64_t progress, std::optional<int64_t> updates)
      ABSL_LOCKS_EXCLUDED(order_mu_);
  // Notes that a checkpoint that names `place` is complete. Removes what
  // neither it nor the complete checkpoint before it needs.
  void NoteComplete(const JournalPlace& place) ABSL_LOCKS_EXCLUDED(order_mu_);

  uint64_t bytes_written() const { return writer_->bytes_written(); }

 private:
  JournalPlace PlaceOfCut(int64_t progress, std::optional<int64_t> updates)
      ABSL_LOCKS_EXCLUDED(order_mu_);

  const std::unique_ptr<JournalWriter> writer_;

  // Makes the order of the records the one in which they are applied.
  absl::Mutex order_mu_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(order_mu_);
  uint64_t needed_ ABSL_GUARDED_BY(order_mu_) =
      0;  // place of the newest complete one
};

}  // namespace parasol

#endif  // PARASOL_PS_JOURNAL_PUSH_JOURNAL_H_
