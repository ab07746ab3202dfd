#ifndef PARASOL_TOOL_PUBLISH_PUBLISHING_FOLLOWER_H_
#define PARASOL_TOOL_PUBLISH_PUBLISHING_FOLLOWER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/checkpoint/model/checkpoint_follower.h"
#include "storage/checkpoint_store.h"
#include "tool/publish/publisher.h"

namespace parasol {

// Returns OK if checkpoints may appear in the directory.
//   NotFound         there is no such directory.
//   InvalidArgument  it is itself a checkpoint.
absl::Status CheckCanBeFollowed(const std::string& checkpoints);

// Publishes the checkpoints of a directory as they appear, in ascending order,
// from the first one that is newer than the newest version on, until the job's
// last one is published. Damaged ones are passed over, and said. What may pass
// (a full disk, a file system that refuses) is tried again, unless a newer one
// is published meanwhile.
class PublishingFollower {
 public:
  struct Options {
    std::string checkpoints;
    absl::Duration poll_interval = absl::Seconds(1);
  };

  // `publisher` and `clock` must outlive this object; `published` is told of
  // each version.
  PublishingFollower(const Options& options, Publisher& publisher,
                     std::function<void(const Publication&)> published,
                     Clock& clock);

  // Blocks until the job's last checkpoint is published, or Stop(). May be
  // called once.
  //   NotFound            there is no such directory.
  //   DataLoss            the job's last checkpoint is damaged.
  //   InvalidArgument     the directory is a checkpoint, or one in it is of
  //                       another run than the versions, whatever its step.
  //   FailedPrecondition  the job's last checkpoint is of an earlier step than
  //                       the newest version.
  //   any other           as for Publisher::Publish(), where trying again is
  //                       useless.
  absl::Status Run();

  // Ends Run() with OK before the next checkpoint. May be called twice, from
  // any thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Listing = std::vector<ListedCheckpoint>;

  bool IsStopping() const ABSL_LOCKS_EXCLUDED(mu_);
  void ReportDamaged(const ListedCheckpoint& checkpoint,
                     const absl::Status& damage);
  absl::Status PublishNewOnes(const Listing& listing);
  // Passes over a checkpoint of an earlier step than the newest version.
  // Returns an error that ends all: it is of another run, or the job's last
  // one, behind which no newer one comes.
  absl::Status PassOver(const ListedCheckpoint& checkpoint, bool is_last);
  void TryAgainAfter(const absl::Status& error);
  // Returns an error that ends all, or OK.
  absl::Status Publish(const ListedCheckpoint& checkpoint);

  const Options options_;
  const CheckpointStore store_;
  Publisher& publisher_;
  const std::function<void(const Publication&)> published_;
  Clock& clock_;
  CheckpointFollower follower_;
  // True if some time must pass before the next try.
  bool must_wait_ = false;
  bool has_no_room_ = false;
  mutable absl::Mutex mu_;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_PUBLISHING_FOLLOWER_H_
