#ifndef PARASOL_SERVING_MODEL_VERSIONS_H_
#define PARASOL_SERVING_MODEL_VERSIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/checkpoint/model/known_manifests.h"
#include "serving/served_model.h"
#include "serving/serving_metrics.h"
#include "serving/version_policy.h"
#include "serving/version_state.h"
#include "storage/checkpoint_store.h"

namespace parasol {

// The model that is served, and its replacement by newer checkpoints: a new one
// is loaded beside the served one, then takes its place. A request keeps the
// version that it began with, which lives until its last request is answered.
// Thread-safe.
class ModelVersions {
 public:
  // Function that loads the checkpoint in a directory.
  using Load = std::function<absl::StatusOr<std::shared_ptr<ServedModel>>(
      const std::string& directory)>;

  struct Options {
    // The directory of the checkpoints.
    std::string directory = {};
    // The only step to serve.
    std::optional<int64_t> pinned = {};
    // True: the checkpoint that the directory's file BEST names is served, not
    // the newest one.
    bool is_best = false;
    absl::Duration poll_interval = absl::Seconds(1);
    // Called when the first version is served.
    std::function<void()> on_ready = [] {};
  };

  // `clock` and `metrics` must outlive this object.
  ModelVersions(const Options& options, Load load, Clock& clock,
                ServingMetrics& metrics);

  // Follows the directory until Stop(), which lets a load in progress end.
  // Waits for a first checkpoint, or a first BEST, and logs that it does.
  //   NotFound         the directory is not there at the begin.
  //   InvalidArgument  it has checkpoints, but not the pinned one.
  //   any other        nothing of what is there can be served, now or later:
  //                    why not.
  absl::Status Run();
  // Lets Run() end, and no other version take the place of the served one. Does
  // not wait.
  void Stop();

  // Looks once for a checkpoint to serve and loads it. What can't be read at
  // the moment waits for another turn, and older ones have theirs if none is as
  // new as the served one. Fails as Run() does. For Run() and for tests.
  absl::Status Update();

  // The served model; null before the first.
  std::shared_ptr<ServedModel> Current() const;
  std::vector<VersionState> States() const;

 private:
  // Checkpoints that there are to serve, in ascending order of steps.
  struct Listing {
    std::vector<ListedCheckpoint> checkpoints = {};
    // True if other checkpoints may be served later: older ones, or ones listed
    // as damaged that just can't be read at the moment.
    bool has_others = false;
  };
  // A checkpoint whose load failed for a reason that may pass.
  struct Delayed {
    absl::Time next_try = {};
    absl::Duration delay = {};  // wait before the next try
  };

  absl::StatusOr<Listing> List();
  absl::StatusOr<std::vector<int64_t>> ListSteps();
  // Returns the step that BEST names; none while there is no such file, or the
  // checkpoint is not there.
  absl::StatusOr<std::vector<int64_t>> ListBest();
  // Adds the checkpoint of a step to the listing, unless it is gone. With
  // `may_recall` as it was when it was last looked at.
  void ListStep(int64_t step, bool may_recall, Listing& listing);
  // Returns the checkpoint whose turn it is; nullopt to go on, or if stopping.
  std::optional<ListedCheckpoint> Next(const Listing& listing);
  void Try(const ListedCheckpoint& checkpoint);
  // Gives the checkpoint another turn later.
  void Delay(const ListedCheckpoint& checkpoint, const absl::Status& reason);
  void Swap(const ListedCheckpoint& checkpoint,
            std::shared_ptr<ServedModel> model);
  // Counts what takes the place of the served model.
  void NoteAge(const ServedModel& model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Refuse(const ListedCheckpoint& checkpoint, const absl::Status& reason);
  void LogWaiting();
  // Frees models that no request uses any more, on this thread.
  void FreeRetired();

  const Options options_;
  const Load load_;
  Clock& clock_;
  ServingMetrics& metrics_;
  const CheckpointStore store_;
  KnownManifests manifests_;
  absl::Time next_log_ = absl::InfinitePast();
  std::string no_best_;  // the reason why ListBest() has found none
  std::vector<std::shared_ptr<ServedModel>> retired_;
  std::map<ListedCheckpoint, Delayed> delayed_;

  mutable absl::Mutex mu_;
  VersionPolicy policy_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<ServedModel> current_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_VERSIONS_H_
