#ifndef PARASOL_PS_SHARD_CUT_HOLD_H_
#define PARASOL_PS_SHARD_CUT_HOLD_H_

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_shard.h"

namespace parasol {

// The hold of a shard between PrepareSnapshot and Snapshot. A shard whose chief
// does not come back goes on by itself after kLimit. Thread-safe.
//
// Shutdown: the destructor ends the hold and joins the thread that watches its
// limit.
class CutHold {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(5);

  // `clock` must outlive the hold.
  explicit CutHold(Clock& clock);
  ~CutHold();

  // Holds `shard`, for kLimit from now, and returns its numbers of updates.
  // Ends the hold of another shard. Errors as for ParameterShard::Hold().
  absl::StatusOr<UpdateBounds> Hold(std::shared_ptr<ParameterShard> shard)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Runs on the object's thread.
  void WatchLimit() ABSL_LOCKS_EXCLUDED(mu_);

  Clock& clock_;
  absl::Mutex mu_;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  // True if a limit runs.
  bool is_held_ ABSL_GUARDED_BY(mu_) = false;
  // The shard that may be held. A shard that is replaced is not kept in memory.
  std::weak_ptr<ParameterShard> shard_ ABSL_GUARDED_BY(mu_);
  absl::Time end_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_CUT_HOLD_H_
