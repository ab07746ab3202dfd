#ifndef PARASOL_STORAGE_TIER_ROW_LOG_H_
#define PARASOL_STORAGE_TIER_ROW_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/tier/log_record.h"
#include "storage/tier/tier_file.h"

namespace parasol {

// Rows of a table that are on the disk of their process, and on their way
// there. Rows are appended to segments, which are written as a whole when they
// are full; a row never changes where it is. Whoever has the log knows where
// each of its rows is. A segment is given back when none of its rows is of use
// any more and nobody reads it.
//
// It writes and compacts when it is told to, by whoever has a thread for that.
// Memory: a bit for each place of a row; segments that are not written yet.
// Thread-safe; no lock is held over the disk.
class RowLog : public std::enable_shared_from_this<RowLog> {
 public:
  struct Options {
    LogRecordFormat format;
    // Bytes of a segment, at least as many as of a record.
    size_t segment_bytes = 8 << 20;
  };
  // Segments that are full and not written yet, from which on the log is
  // behind: rows should stay where they are.
  static constexpr size_t kMostUnwritten = 2;

  RowLog(std::shared_ptr<TierFile> file, const Options& options);

  // Appends a row and returns its place.
  LogPlace Append(const LoggedRow& row) ABSL_LOCKS_EXCLUDED(mu_);
  // Does the same, or nothing if the log is behind.
  std::optional<LogPlace> AppendUnlessBehind(const LoggedRow& row)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Appends a row that is at `from`, and frees that place: a snapshot has it
  // once.
  LogPlace Move(LogPlace from, const LoggedRow& row) ABSL_LOCKS_EXCLUDED(mu_);
  // Says that the row at a place is of no use there any more.
  void Free(LogPlace place) ABSL_LOCKS_EXCLUDED(mu_);
  // Has rows that a later update than `most` touched count as touched by it,
  // as far as they have been appended before. No snapshot may be there.
  void ClampTouched(int64_t most) ABSL_LOCKS_EXCLUDED(mu_);

  // Writes the segment that has been full for longest. Returns false if there
  // is none.
  //   ResourceExhausted, Unavailable  TierFile::Write()'s. The segment stays in
  //                                   memory, to be written later.
  absl::StatusOr<bool> Write() ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `move` for each row of the segment with the fewest, which is to move
  // those that are still at their place. Returns false if too few places are
  // wasted.
  //   Unavailable, DataLoss  a row can't be read, or is damaged.
  absl::StatusOr<bool> Compact(
      absl::FunctionRef<void(LogPlace place, const LoggedRow& row)> move)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when there may be something to write or to compact, after `timeout`
  // or Stop().
  void AwaitWork(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends AwaitWork() and AwaitRoom() from now on. Returns true if it has been
  // called.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  bool is_stopped() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns true if the log is behind.
  bool is_behind() const ABSL_LOCKS_EXCLUDED(mu_);
  // Waits while the log is behind, for up to `timeout`.
  //   any  the newest write has failed so, and the log is behind still.
  absl::Status AwaitRoom(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

  // Bytes of segments in memory, and of the file.
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t file_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  size_t segment_bytes() const { return segment_memory_; }
  const LogRecordFormat& format() const { return options_.format; }

 private:
  friend class RowReads;
  friend class LogSnapshot;

  enum class State { kFree, kOpen, kFull, kBeingWritten, kWritten };
  struct Segment {
    State state = State::kFree;
    // The places that have a row which is of use.
    std::vector<uint64_t> live = {};
    size_t live_rows = 0;
    size_t rows = 0;
    // Largest LoggedRow::changed.
    uint32_t newest_change = 0;
    int64_t touched_at_most = INT64_MAX;
    // How many read it: it is not given back meanwhile.
    size_t pins = 0;
    bool is_compacted = false;
    // Null once it is written.
    std::shared_ptr<const BlockMemory> bytes = nullptr;
  };

  size_t SegmentOf(LogPlace place) const { return place / rows_per_segment_; }
  uint64_t OffsetOf(LogPlace place) const {
    return SegmentOf(place) * segment_memory_ +
           place % rows_per_segment_ * options_.format.record_bytes();
  }
  LogPlace AppendLocked(const LoggedRow& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeLocked(LogPlace place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OpenSegment() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Unpin(size_t segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBackIfUseless(size_t segment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the segment that is to be compacted next; kNone: there is none.
  size_t ToCompact() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls `visit` for the rows of a pinned segment that `live` has, in their
  // order.
  absl::Status Visit(
      size_t segment, const std::vector<uint64_t>& live,
      absl::FunctionRef<absl::Status(LogPlace, const LoggedRow&)> visit)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns how many are full and not written.
  size_t unwritten() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return full_.size() + (is_writing_ ? 1 : 0);
  }

  static constexpr size_t kNone = SIZE_MAX;

  const std::shared_ptr<TierFile> file_;
  const Options options_;
  const size_t rows_per_segment_;
  const size_t segment_memory_;  // bytes, whole blocks
  mutable absl::Mutex mu_;
  std::vector<Segment> segments_ ABSL_GUARDED_BY(mu_);
  std::set<size_t> free_ ABSL_GUARDED_BY(mu_);  // numbers of segments
  // Segments that are to be written, in this order.
  std::deque<size_t> full_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  size_t open_ ABSL_GUARDED_BY(mu_) = kNone;
  // The bytes of the open segment, to be written.
  std::byte* open_bytes_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t segments_in_memory_ ABSL_GUARDED_BY(mu_) = 0;
  size_t segments_in_file_ ABSL_GUARDED_BY(mu_) = 0;
  // Result of the newest write.
  absl::Status write_failure_ ABSL_GUARDED_BY(mu_);
};

// The rows that a log has at one moment, or the ones that have changed since a
// snapshot. What it has stays in the file while it lives.
class LogSnapshot {
 public:
  LogSnapshot() = default;
  // `changed_since`: the rows whose LoggedRow::changed is that or larger.
  LogSnapshot(std::shared_ptr<RowLog> log, uint32_t changed_since);
  LogSnapshot(const LogSnapshot& other);
  LogSnapshot(LogSnapshot&& other) noexcept = default;
  LogSnapshot& operator=(LogSnapshot other) noexcept;
  ~LogSnapshot() { Release(); }

  // Visits each row once, and gives segments free as it goes. The row lives
  // until the visit returns.
  //   Unavailable, DataLoss  a row can't be read, or is damaged.
  absl::Status Drain(absl::FunctionRef<absl::Status(const LoggedRow&)> visit);

  // Most rows that Drain() visits; as many if it visits all.
  size_t rows() const { return rows_; }

 private:
  struct Piece {
    size_t segment;
    std::vector<uint64_t> live;
  };
  void Release();

  std::shared_ptr<RowLog> log_;
  uint32_t changed_since_ = 0;
  size_t rows_ = 0;
  std::vector<Piece> pieces_;
};

// Rows of a log that are read together. Begun while it is known where they are,
// and ended without a lock. Not thread-safe, but rows may be looked at by
// several threads.
class RowReads {
 public:
  explicit RowReads(std::shared_ptr<RowLog> log) : log_(std::move(log)) {}
  RowReads(const RowReads&) = delete;
  RowReads& operator=(const RowReads&) = delete;
  ~RowReads();

  // Adds the row of an id, which is at a place now, as number size().
  void Add(uint64_t id, LogPlace place);
  // Reads all rows; called once.
  //   Unavailable, DataLoss  a row can't be read, or is damaged.
  absl::Status Finish();

  size_t size() const { return wanted_.size(); }
  // Returns how many needed the disk.
  size_t disk_reads() const { return on_disk_.size(); }
  LogPlace place(size_t i) const { return wanted_[i].place; }
  LoggedRow row(size_t i) const;

 private:
  struct Wanted {
    uint64_t id;
    LogPlace place;
    int64_t touched_at_most;
  };

  absl::Status ReadSome(size_t first, size_t count);

  const std::shared_ptr<RowLog> log_;
  std::vector<Wanted> wanted_;
  std::vector<std::byte> records_;
  std::vector<size_t> on_disk_;  // numbers of wanted_
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_ROW_LOG_H_
