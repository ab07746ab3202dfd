#ifndef PARASOL_STORAGE_JOURNAL_JOURNAL_WRITER_H_
#define PARASOL_STORAGE_JOURNAL_JOURNAL_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "storage/journal/journal_fence.h"
#include "storage/journal/journal_format.h"

namespace parasol {

class FileDescriptor;  // storage/durable_file.h

// The moment from which on a record of a journal counts as kept.
enum class Kept {
  kWritten,  // the system has it: it survives the process
  kOnDisk,   // the disk has it: it survives a loss of power
};

// Appends records to a journal: storage/FORMAT.md, "Journal". Thread-safe.
//
// A thread of the writer calls fdatasync(2), with kOnDisk, for all records that
// have come meanwhile, so the disk's latency is one for many of them.
class JournalWriter {
 public:
  // Called when records are kept, or with the reason why they will not be.
  using Done = std::function<void(const absl::Status&)>;

  // Makes the directory if it is missing, and a new file in it: the segment
  // that `header` says. It must be the journal's newest one. `fence`: taken
  // before the journal was read; nothing is kept once it is lost. Null: no
  // other process writes the journal. Fails as durable_file.h says.
  static absl::StatusOr<std::unique_ptr<JournalWriter>> Create(
      const std::string& directory, const SegmentHeader& header, Kept kept,
      std::unique_ptr<const JournalFence> fence = nullptr);
  ~JournalWriter() { Close(); }

  // Appends nothing any more, calls all that wait with Unavailable, and returns
  // when no call is under way. May be called twice, but not by what waits: so
  // call it before what waits may be the last to refer to the writer.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  // Appends a record: `pieces`, one behind the other. A record that was not
  // appended is not in the journal, unless another process has taken it: that
  // one may have read the record.
  //   Unavailable  the disk has no room, or has failed, or another process has
  //                taken the journal: says what to do. With room again, later
  //                records are appended.
  absl::Status Append(absl::Span<const absl::string_view> pieces)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `done` when all records that were appended so far are kept: before it
  // returns, or on the writer's thread.
  void WhenKept(Done done) ABSL_LOCKS_EXCLUDED(mu_);
  // True if WhenKept() calls back before it returns.
  bool keeps_at_once() const { return kept_ == Kept::kWritten; }

  // Ends the segment, and begins another one, of which it returns the number.
  // After an error records go on in the old one.
  //   Unavailable  another process has taken the journal.
  // and as durable_file.h says.
  absl::StatusOr<uint64_t> BeginSegment(int64_t progress)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when all records and segments so far are kept. With kOnDisk it
  // waits for the disk, while records are appended.
  //   Unavailable  the disk has failed: nothing is appended any more.
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(sync_mu_, mu_);
  // Removes the segments before `segment`, and those that were put aside.
  void RemoveBefore(uint64_t segment) ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t journal() const { return journal_; }
  // Number of the last record that was appended; 0: there is none.
  uint64_t last_record() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t segment() const ABSL_LOCKS_EXCLUDED(mu_);
  // Number of bytes of all segments that this object has written.
  uint64_t bytes_written() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A segment's file. The thread that syncs it may have it longer.
  using File = std::shared_ptr<const FileDescriptor>;
  struct Waiting {
    uint64_t record;  // the last one that it waits for
    Done done;
  };

  JournalWriter(std::string directory, const SegmentHeader& header, Kept kept,
                std::unique_ptr<const JournalFence> fence);

  std::string PathOf(uint64_t segment) const;
  absl::Status Begin(const SegmentHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Write(absl::Span<const absl::string_view> pieces)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Appends nothing more if another process has taken the journal.
  absl::Status CheckFence() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes all back that follows the last whole record.
  void TakeBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns those that wait for nothing any more, in their order.
  std::vector<Waiting> TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Runs on the writer's thread.
  void Run() ABSL_LOCKS_EXCLUDED(sync_mu_, mu_);
  // Syncs the files, and the directory if that has new names.
  absl::Status SyncFiles(absl::Span<const File> files, bool has_new_names);

  const std::string directory_;
  const Kept kept_;
  const std::unique_ptr<const JournalFence> fence_;  // null: none
  const uint64_t journal_;

  // Held while files are synced: the system tells of an error once, and whoever
  // is told says so before another one takes its files for synced.
  absl::Mutex sync_mu_ ABSL_ACQUIRED_BEFORE(mu_);
  mutable absl::Mutex mu_;
  SegmentHeader header_ ABSL_GUARDED_BY(mu_);  // header of the file
  File file_ ABSL_GUARDED_BY(mu_);
  // Files of ended segments, which are to be synced, and whether there are
  // files whose names are; with kOnDisk.
  std::vector<File> ended_ ABSL_GUARDED_BY(mu_);
  bool has_new_names_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t size_ ABSL_GUARDED_BY(mu_) = 0;  // bytes of the file, whole records
  uint64_t bytes_before_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t next_record_ ABSL_GUARDED_BY(mu_);
  uint64_t kept_up_to_ ABSL_GUARDED_BY(mu_);  // the last record that is kept
  // The reason why nothing is appended any more; OK as a rule.
  absl::Status broken_ ABSL_GUARDED_BY(mu_);
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mu_);  // ascending records
  std::thread thread_;                                 // runs with kOnDisk
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_JOURNAL_JOURNAL_WRITER_H_
