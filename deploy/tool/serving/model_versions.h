#ifndef PARASOL_DEPLOY_TOOL_SERVING_MODEL_VERSIONS_H_
#define PARASOL_DEPLOY_TOOL_SERVING_MODEL_VERSIONS_H_

#include <cstdint>
#include <functional>
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
#include "deploy/tool/serving/served_model.h"
#include "deploy/tool/serving/serving_metrics.h"
#include "deploy/tool/serving/version_policy.h"
#include "deploy/tool/serving/version_state.h"
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
    absl::Duration poll_interval = absl::Seconds(1);
    // Called when the first version is served.
    std::function<void()> on_ready = [] {};
  };

  // `clock` and `metrics` must outlive this object.
  ModelVersions(const Options& options, Load load, Clock& clock,
                ServingMetrics& metrics);

  // Follows the directory until Stop(). Waits for a first checkpoint, and logs
  // that it does.
  //   NotFound         the directory is not there at the begin.
  //   InvalidArgument  it has checkpoints, but not the pinned one.
  //   any other        nothing of what is there can be served: why not.
  absl::Status Run();
  void Stop();

  // Looks once for a checkpoint to serve and loads it. Errors are those of
  // Run(). For Run() and for tests.
  absl::Status Update();

  // The served model; null before the first.
  std::shared_ptr<ServedModel> Current() const;
  std::vector<VersionState> States() const;

 private:
  absl::StatusOr<std::vector<ListedCheckpoint>> List();
  // Tries the checkpoint. Returns false if it can't be read at the moment.
  bool Try(const ListedCheckpoint& checkpoint);
  void Swap(const ListedCheckpoint& checkpoint,
            std::shared_ptr<ServedModel> model);
  void Refuse(const ListedCheckpoint& checkpoint, const absl::Status& reason);
  void LogWaiting();
  // Frees models that no request uses any more, on this thread.
  void FreeRetired();

  const Options options_;
  const Load load_;
  Clock& clock_;
  ServingMetrics& metrics_;
  const CheckpointStore store_;
  absl::Time next_log_ = absl::InfinitePast();
  std::vector<std::shared_ptr<ServedModel>> retired_;
  absl::Status last_refusal_;

  mutable absl::Mutex mu_;
  VersionPolicy policy_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<ServedModel> current_ ABSL_GUARDED_BY(mu_);
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TOOL_SERVING_MODEL_VERSIONS_H_
