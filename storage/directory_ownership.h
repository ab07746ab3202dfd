#ifndef PARASOL_STORAGE_DIRECTORY_OWNERSHIP_H_
#define PARASOL_STORAGE_DIRECTORY_OWNERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/checkpoint.pb.h"
#include "storage/directory_lock.h"
#include "storage/durable_file.h"
#include "storage/owner_watch.h"

namespace parasol {

// The ownership of a checkpoint directory: one process, a chief or a worker
// without a cluster, writes checkpoints there. The file CHIEF names the owner,
// who renews its lease by touching the file; an advisory lock on CHIEF.lock
// tells processes of the same machine that it lives (storage/FORMAT.md). Also
// locks the directory against removal (DirectoryLock). Thread-safe.
//
// Shutdown: StopRenewal() if there is a callback, then destroy it. The
// directory is then free for the next owner.
class DirectoryOwnership {
 public:
  static constexpr absl::Duration kLease = absl::Seconds(15);
  // Lease of a directory in a store, where each renewal is paid for, and an
  // owner that was killed is known by nothing else.
  static constexpr absl::Duration kLeaseInStore = absl::Seconds(30);

  struct Options {
    std::string directory;
    std::string job_name = {};
    // Time in silence after which an owner on another machine, or one that
    // stands still, counts as dead. An owner renews it five times as often.
    // nullopt: kLease, or kLeaseInStore.
    std::optional<absl::Duration> lease = std::nullopt;
    // Function that ends the wait of Take(); it is polled.
    std::function<bool()> cancelled = [] { return false; };
    // Function that is told what Take() waits for.
    std::function<void(absl::string_view)> on_wait = [](absl::string_view) {};
  };

  // Makes the directory if it is missing, and takes it. Waits for a lease at
  // most, if it is not known whether the present owner lives, and says so in
  // the log. `clock` must outlive the ownership.
  //   InvalidArgument  the owner lives: the message names its host, process and
  //                    job. Or the path is not a directory.
  //   PermissionDenied, ResourceExhausted, Unavailable  the directory can't be
  //                    written, or others want it all the time.
  //   Cancelled        `cancelled` returned true.
  static absl::StatusOr<std::unique_ptr<DirectoryOwnership>> Take(
      Options options, Clock& clock);
  ~DirectoryOwnership();

  // Number of this owner, larger than the number of any owner before it.
  int64_t chief_epoch() const { return chief_epoch_; }
  // Newest process at each ps's place, as the owner before has recorded it.
  const std::vector<durable::PlaceEpoch>& ps_at_start() const {
    return ps_at_start_;
  }

  // Checks that the directory still has this owner; an owner calls it before it
  // changes anything there. Writes the file CHIEF again if it was removed.
  //   FailedPrecondition  it has another one: this process must touch nothing
  //                       more. It stays so.
  //   InvalidArgument     the path is not a directory any more.
  //   any other           it can't be read now.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(disk_mu_, mu_);

  // Returns FailedPrecondition if the directory is known to have another owner.
  // Has another thread look first, and waits for that for `limit` at most: a
  // disk that does not answer holds nobody up.
  absl::Status CheckWithin(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the run of that record.
  const std::string& run_at_start() const { return run_at_start_; }

  // Checks as above, then records the run, and the newest process at each ps's
  // place, durably. What is recorded of the run's standbys stays.
  absl::Status Record(const std::string& run_id,
                      const std::vector<durable::PlaceEpoch>& ps)
      ABSL_LOCKS_EXCLUDED(disk_mu_, mu_);

  // Checks as above, then records the standbys of the run's shards: `ps` has
  // each place's index and standby. The places' processes stay.
  absl::Status RecordStandbys(const std::string& run_id,
                              const std::vector<durable::PlaceEpoch>& ps)
      ABSL_LOCKS_EXCLUDED(disk_mu_, mu_);

  // Sets a callback that runs once, on a thread of this object, when another
  // process has become the owner (also if that was before this call). It must
  // not call StopRenewal() or destroy the ownership.
  void OnLost(std::function<void(absl::Status)> callback)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the renewals and joins their thread: no callback runs any more. The
  // directory stays this owner's for a lease, or until it is destroyed. May be
  // called twice.
  void StopRenewal() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  DirectoryOwnership(Options options, Clock& clock);

  absl::Status TakeNow() ABSL_LOCKS_EXCLUDED(disk_mu_, mu_);
  // Returns true if this process has the store's directory now; withdraws if
  // others want it in this moment.
  absl::StatusOr<bool> TakeInStore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mu_);
  // Waits until the directory may be taken, takes its lock if it has any, and
  // returns the owner before this one.
  absl::StatusOr<OwnerSight> AwaitTurn()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mu_);
  absl::Status CheckNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mu_);
  // Returns the record's entry of a place; makes it if it is missing.
  durable::PlaceEpoch& PlaceOf(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mu_);
  // Returns OK only if whoever takes the directory next finds the record.
  absl::Status WriteRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mu_);
  absl::Status Lost(const durable::DirectoryOwner& now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Renews the lease until the end.
  void Run();
  void Renew();
  void Release();

  const Options options_;
  const absl::Duration lease_;
  Clock& clock_;
  bool is_taken_ = false;
  int64_t chief_epoch_ = 0;
  std::vector<durable::PlaceEpoch> ps_at_start_;
  std::string run_at_start_;

  // Held during accesses of the disk: CHIEF has one writer at a time.
  absl::Mutex disk_mu_;
  durable::DirectoryOwner record_ ABSL_GUARDED_BY(disk_mu_);
  // True if others' files were there at the last look.
  bool has_left_behind_ ABSL_GUARDED_BY(disk_mu_) = false;
  std::optional<DirectoryLock> in_use_ ABSL_GUARDED_BY(disk_mu_);
  std::optional<FileDescriptor> lock_ ABSL_GUARDED_BY(disk_mu_);

  absl::Mutex mu_ ABSL_ACQUIRED_AFTER(disk_mu_);
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  std::function<void(absl::Status)> on_lost_ ABSL_GUARDED_BY(mu_);
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  // Numbers of the last look of the renewing thread that has begun, of the last
  // one that has ended, and of the one that is wanted at once.
  int64_t begun_look_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t ended_look_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t wanted_look_ ABSL_GUARDED_BY(mu_) = 0;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_DIRECTORY_OWNERSHIP_H_
