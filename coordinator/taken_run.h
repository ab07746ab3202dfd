#ifndef PARASOL_COORDINATOR_TAKEN_RUN_H_
#define PARASOL_COORDINATOR_TAKEN_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "coordinator/coordinator_options.h"
#include "ml/layer/variable_spec.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "storage/shard_writer.h"

namespace parasol {

// The checkpoint directory of a run that its chief has taken up.
struct TakenRun {
  std::unique_ptr<DirectoryOwnership> ownership;
  CheckpointStore store;
};

struct TakeRunOptions {
  std::string directory;
  std::vector<VariableSpec> variables;  // the model's
  // Function that writes what a new run begins with, as for
  // WriteFirstCheckpoint(); null: the initializers or the job's warm start say
  // it.
  std::function<absl::Status(ShardWriter& writer)> first_values = nullptr;
  std::optional<absl::Duration> directory_lease = std::nullopt;
  // Longest time to try while the disk is full.
  absl::Duration full_limit = absl::Minutes(10);
  // Function that ends all waits; it is polled.
  std::function<bool()> cancelled = [] { return false; };
  // Function that is told what is waited for; empty: nothing any more.
  std::function<void(absl::string_view)> on_trouble = [](absl::string_view) {};
};

// Takes the directory, and finds with what the run of `coordinator`, which has
// the job and its contents, goes on: fills in the rest that a checkpoint says.
// A new run that begins warm, or with values of its own, gets its first
// checkpoint. Tries again while the
// directory can't be read, or waits until its owner is known to have ended, by
// `owner_clock`. The clocks must outlive the result.
//   InvalidArgument, PermissionDenied  the directory is of no use, or has a
//                another model's checkpoint or another owner, or was full for
//                `full_limit`; the message says which.
//   DataLoss     no checkpoint in the directory is intact.
//   Unavailable  the directory could not be read for five minutes.
//   Cancelled    `cancelled` returned true.
absl::StatusOr<TakenRun> TakeRun(const TakeRunOptions& options, Clock& clock,
                                 Clock& owner_clock,
                                 CoordinatorOptions& coordinator);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TAKEN_RUN_H_
