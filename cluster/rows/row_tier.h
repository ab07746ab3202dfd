#ifndef PARASOL_CLUSTER_ROWS_ROW_TIER_H_
#define PARASOL_CLUSTER_ROWS_ROW_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rows/row_block.h"
#include "ml/optimizer/optimizer.h"
#include "storage/tier/row_log.h"
#include "storage/tier/tier_file.h"

namespace parasol {

// The place of rows that don't fit in a table's memory.
struct RowTierOptions {
  // The disk; null: the table has none, all rows are in memory.
  std::shared_ptr<TierFile> file = nullptr;
  // Bytes of memory for rows, their index, and segments that are not written.
  size_t memory_bytes = 0;
  size_t segment_bytes = 8 << 20;
  // Takes the function that writes and compacts, one piece at a time, and
  // returns false if there is nothing to do: whoever has it calls it while the
  // table lives. Null: the table has a thread that does.
  std::function<void(std::function<bool()> work)> give_work = {};
  // Called once, on any thread, when a row is lost: the table is of no use from
  // then on, and each call says so.
  std::function<void(const absl::Status& failure)> on_failure = {};
};

// The rows of a table that are on the disk, as its stripes share them: the log,
// the thread that writes and compacts it, and how many rows stay in memory.
// Thread-safe.
class RowTier {
 public:
  // Segments that a log has in memory at most, while it is not behind: the open
  // one, one that is compacted into it, those that wait and one that is being
  // written.
  static constexpr size_t kSegmentsInMemory = RowLog::kMostUnwritten + 3;
  // Bytes of memory below which a table has no room for rows.
  static size_t LeastMemoryBytes(const RowTierOptions& options,
                                 const RowLayout& layout);

  //   InvalidArgument  the table can't have this tier.
  static absl::Status Check(const std::string& table,
                            const RowTierOptions& options,
                            const Optimizer& optimizer,
                            const RowLayout& layout);

  RowTier(std::string table, RowTierOptions options, const RowLayout& layout);

  // Calls `move` for rows that are to be moved within the log, on a thread of
  // its own unless the options say otherwise; before anything is appended.
  using MoveRow = std::function<void(LogPlace place, const LoggedRow& row)>;
  void Start(MoveRow move);
  // Joins the thread; nothing is moved from then on.
  void Stop();

  // Writes a segment, or compacts one. Returns false if there is nothing to do,
  // or nothing can be done now.
  bool Work() ABSL_LOCKS_EXCLUDED(mu_);

  RowLog& log() { return *log_; }
  const std::shared_ptr<RowLog>& shared_log() { return log_; }
  // Most rows of a stripe that stay in memory when nobody works on it.
  size_t rows_of_stripe() const {
    return rows_of_stripe_.load(std::memory_order_relaxed);
  }
  // Goes on with the memory that the other table has.
  void TakeMemoryOf(const RowTier& other);

  // Waits a little while rows can't leave for the disk as fast as they come,
  // again and again while `rows_in_memory` are more than may be there.
  //   ResourceExhausted  the disk is full or refuses, or has taken nothing for
  //                      a minute.
  //   Unavailable        the table has failed.
  absl::Status AwaitRoom(size_t rows_in_memory = 0) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until rows can leave. Fails as AwaitRoom() does.
  absl::Status AwaitAllRoom() ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that a row is lost, and returns the error of the table from then on.
  absl::Status Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  //   Unavailable  a row was lost.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool has_thread() const { return options_.give_work == nullptr; }
  void Run();
  absl::Status NoRoom(const absl::Status& why) const;
  // Logs once that the disk takes nothing, and that it does again.
  void NoteWrite(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string table_;
  const RowTierOptions options_;
  const RowLayout layout_;
  const std::shared_ptr<RowLog> log_;
  std::atomic<size_t> memory_bytes_;
  std::atomic<size_t> rows_of_stripe_;
  std::atomic<bool> has_failed_ = false;
  MoveRow move_;
  mutable absl::Mutex mu_;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  bool writes_fail_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Rows of a request that were on the disk when it came. Not thread-safe, but
// rows may be looked at by several threads.
struct FetchedRows {
  explicit FetchedRows(std::shared_ptr<RowLog> log) : reads(std::move(log)) {}

  void Add(uint64_t hash, uint64_t id, LogPlace place) {
    hashes.push_back(hash);
    reads.Add(id, place);
  }

  std::vector<uint64_t> hashes = {};  // hash of each read
  RowReads reads;
};

// The fetched rows of one stripe: numbers of FetchedRows.
struct FetchedRange {
  const FetchedRows* rows = nullptr;
  size_t begin = 0;
  size_t end = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_TIER_H_
