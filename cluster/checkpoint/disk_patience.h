#ifndef PARASOL_CLUSTER_CHECKPOINT_DISK_PATIENCE_H_
#define PARASOL_CLUSTER_CHECKPOINT_DISK_PATIENCE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// Returns true if an error of the checkpoint directory may pass: the disk is
// full or can't be read now (Unavailable, ResourceExhausted). Damage, absence
// and a wrong configuration don't pass.
bool MayPass(const absl::Status& error);

// The waits of a process that starts, between attempts at a checkpoint
// directory that can't be read or written now. Not thread-safe.
class DiskPatience {
 public:
  // The first wait; each is twice as long as the one before, up to the longest.
  static constexpr absl::Duration kFirstWait = absl::Milliseconds(100);
  static constexpr absl::Duration kLongestWait = absl::Seconds(5);

  struct Options {
    // Longest time from the first failure on.
    absl::Duration limit = absl::Minutes(5);
    // Longest time to try while the disk is full: that in which a checkpoint
    // has to be written.
    absl::Duration full_limit = absl::Minutes(10);
    // Function that tells whether the process is to end; it is polled.
    std::function<bool()> cancelled = [] { return false; };
    // Function that is told each error before the wait.
    std::function<void(absl::string_view)> on_trouble = [](absl::string_view) {
    };
  };

  // `clock` must outlive this object.
  DiskPatience(Options options, Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  // Waits after an attempt that has failed with `error`, and names it in the
  // log.
  //   Unavailable      the limit has passed: the process should be started
  //                    again.
  //   InvalidArgument  the limit of a full disk has passed.
  //   Cancelled        `cancelled` returned true.
  //   any other        `error`, if it does not pass.
  absl::Status Failed(const absl::Status& error);

 private:
  const Options options_;
  Clock& clock_;
  absl::Time failing_since_ = absl::InfiniteFuture();
  absl::Duration wait_ = kFirstWait;
  absl::Time next_log_ = absl::InfinitePast();
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_DISK_PATIENCE_H_
