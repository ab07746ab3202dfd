#ifndef PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
#define PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_writer.h"

namespace parasol {

// Writes the shards' files into `directory` and lists them in `manifest`.
using WriteShardFiles = absl::FunctionRef<absl::Status(
    const std::string& directory, durable::CheckpointManifest& manifest)>;

// Checks that this process is still the directory's owner, as
// DirectoryOwnership::Check() does.
using CheckOwner = absl::FunctionRef<absl::Status()>;

// Checkpoints that stay, whether somebody awaits them or not.
struct Retention {
  // Number of the newest ones that stay; 0: all stay.
  int max_to_keep = 0;
  // Time between checkpoints that stay beside them; infinite: none does.
  absl::Duration keep_every = absl::InfiniteDuration();
};

// Returns the retention that a job asks for.
Retention RetentionOf(const job::CheckpointPolicy& policy);

// Returns the steps of the manifests, ascending by step, that stay because of
// Retention::keep_every: the first one, and each that was written so much later
// than the one that stays before it. So one that stays once does so for good.
// Pure.
std::vector<int64_t> KeptByTime(
    absl::Span<const durable::CheckpointManifest> manifests,
    absl::Duration keep_every);

// Returns true if one file, by its name, size and checksum, is in both. Pure.
bool ShareFiles(const durable::CheckpointManifest& a,
                const durable::CheckpointManifest& b);

// Returns the step of the newest of the manifests, ascending by step, that has
// no file of the last one: checkpoints of increments share files, and what
// damages a file damages all of them. nullopt: there is none, or none of them
// has increments and so nothing is shared. Pure.
std::optional<int64_t> NewestApart(
    absl::Span<const durable::CheckpointManifest> manifests);

// Checkpoints that stay because somebody awaits them.
struct KeptCheckpoints {
  // Steps of evaluated checkpoints, the best one first. The first one that is
  // there stays.
  std::vector<int64_t> best_first = {};
  // The step of the newest evaluation. The `awaited` oldest checkpoints after
  // it that are to be evaluated stay: the evaluation of the first one may be
  // under way. nullopt: none has to be.
  std::optional<int64_t> evaluated_to = std::nullopt;
  int64_t awaited = 1;

  bool operator==(const KeptCheckpoints&) const = default;
};

// Returns none.
inline KeptCheckpoints NoneKept() { return {}; }

// Writes one checkpoint: begins it, has `write_files` write its files, commits
// it with `manifest`, which lacks only the files, and removes all checkpoints
// but what `retention` and `kept` say, and one that shares no file with the new
// one (NewestApart()). Calls `check_owner` before each of these changes. A
// failure to prune is logged: the checkpoint is there. Leaves nothing of a
// checkpoint that failed, unless the owner is another one now: then touches
// nothing more. Fails as `check_owner`, `write_files`,
// CheckpointStore::Begin() and Commit() do.
absl::Status StoreCheckpoint(
    CheckpointStore& store, durable::CheckpointManifest manifest,
    const Retention& retention, WriteShardFiles write_files,
    CheckOwner check_owner,
    absl::FunctionRef<KeptCheckpoints()> kept = NoneKept);

// Writes values and slots of all variables and tables, in ascending order of
// their names, without updates.
using WriteFirstShard = absl::FunctionRef<absl::Status(ShardWriter& writer)>;

// A run that has no checkpoint yet.
struct FirstRun {
  std::string run_id;
  const job::Job& job;
  const CheckpointContents& contents;
  absl::Time now;
};

// Writes the checkpoint of step 0 from which all roles then go on as from any
// other, of one file, which `write` writes. Returns errors of `write` and of
// StoreCheckpoint().
absl::Status WriteFirstCheckpoint(const FirstRun& run, CheckpointStore& store,
                                  CheckOwner check_owner,
                                  WriteFirstShard write);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_STORE_CHECKPOINT_H_
