#ifndef PARASOL_PS_SHARD_OPERATION_WATCH_H_
#define PARASOL_PS_SHARD_OPERATION_WATCH_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cluster/progress/recent_totals.h"
#include "proto/chief.pb.h"

namespace parasol {

// Watches the work of a ps, for the chief to say what bounds the job: the time
// in operations, whose gradients come last, and which row is pushed most.
// Thread-safe.
class OperationWatch {
 public:
  // The last windows of this length say who comes last and what is hot: one or
  // two of them.
  static constexpr absl::Duration kWindow = absl::Seconds(8);
  // Rows of which counts are kept: a row with a larger share of all than one in
  // kRows + 1 is among them.
  static constexpr size_t kRows = 16;
  static constexpr int64_t kMinSampledRows = 32;
  static constexpr size_t kMaxWorkers = 4096;
  // Operations of which it is known when they have begun; a ps has fewer
  // threads that carry out operations.
  static constexpr size_t kStarts = 64;

  explicit OperationWatch(absl::Time now) : windows_(now) {}

  // Counts the time of its life as an operation's.
  class Running {
   public:
    Running(OperationWatch& watch, absl::Time now)
        : watch_(watch), start_(now), entry_(watch.TakeEntry(now)) {}
    // Ends it.
    void End(absl::Time now);

   private:
    OperationWatch& watch_;
    const absl::Time start_;
    std::atomic<int64_t>* const entry_;  // null: there was none
  };

  // Returns the thread, as gettid() names it, whose operation began first of
  // those that have not ended; 0: there is none.
  int BusiestThread() const;

  // Notes a gradient of synchronous training of `worker`.
  void Gradient(uint64_t worker, int64_t step, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets whose gradients have come. Called when a shard has been loaded: its
  // steps may be earlier ones.
  void StartOver() ABSL_LOCKS_EXCLUDED(mu_);
  // Notes one of the rows of a push, drawn at random.
  void PushedRow(uint32_t table, uint64_t row, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

  // The row that is pushed most.
  struct HotRow {
    uint32_t table = 0;
    uint64_t row = 0;
    double share = 0;
  };
  std::optional<HotRow> HottestRow(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns what there was to do over the last seconds, given the bytes so far,
  // and who comes last. Called once for each report.
  wire::PsLoad Load(double push_bytes, double pull_bytes, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Row = std::pair<uint32_t, uint64_t>;  // table, id
  struct Window {
    explicit Window(absl::Time start) : start(start) {}

    absl::Time start;
    // Time in which a worker alone was awaited.
    std::map<uint64_t, absl::Duration> late = {};
    // Counts of rows (Misra and Gries): too small by `given_up` at most.
    std::map<Row, int64_t> rows = {};
    int64_t given_up = 0;
    int64_t sampled_rows = 0;
  };
  struct Windows {
    explicit Windows(absl::Time now) : current(now) {}

    std::optional<Window> last = std::nullopt;
    Window current;
  };

  // Has a cache line of its own: threads begin operations all the time.
  struct alignas(64) Start {
    // Nanoseconds since 1970; 0: none.
    std::atomic<int64_t> nanos = 0;
    std::atomic<int> thread = 0;
  };

  // Returns the entry that says when an operation of this thread has begun.
  std::atomic<int64_t>* TakeEntry(absl::Time now);
  // Returns when the oldest operation that has not ended began; InfiniteFuture
  // if there is none.
  absl::Time OldestStart() const;
  void Rotate(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts who came last in the step that is over.
  void EndStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::atomic<int64_t> operations_ = 0;
  std::atomic<int64_t> busy_nanos_ = 0;
  std::array<Start, kStarts> starts_;

  absl::Mutex mu_;
  RecentTotals recent_ ABSL_GUARDED_BY(mu_);
  Windows windows_ ABSL_GUARDED_BY(mu_);
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  // Time at which each worker's last gradient of `step_` came.
  std::map<uint64_t, absl::Time> came_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_OPERATION_WATCH_H_
