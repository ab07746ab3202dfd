#include "cluster/checkpoint/store_checkpoint.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluation_decisions.h"

namespace parasol {
namespace {

constexpr char kFirstFile[] = "first-0.sst";

// Returns the steps of the store's checkpoints that `kept` spares.
absl::StatusOr<std::vector<int64_t>> StepsOf(const KeptCheckpoints& kept,
                                             const CheckpointStore& store) {
  std::vector<int64_t> spared;
  if (kept.best_first.empty() && !kept.evaluated_to) return spared;
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
  const auto best = std::find_if(
      kept.best_first.begin(), kept.best_first.end(), [&steps](int64_t step) {
        return std::binary_search(steps.begin(), steps.end(), step);
      });
  if (best != kept.best_first.end()) spared.push_back(*best);
  if (!kept.evaluated_to) return spared;
  int64_t awaited = 0;
  for (const int64_t step : steps) {
    if (awaited == kept.awaited) break;
    if (step <= *kept.evaluated_to) continue;
    const auto manifest = store.ReadManifest(step);
    // Nobody evaluates a damaged one.
    if (!manifest.ok() || !IsToBeEvaluated(*manifest)) continue;
    spared.push_back(step);
    ++awaited;
  }
  return spared;
}

absl::Status PruneTo(CheckpointStore& store, int max_to_keep, int64_t newest,
                     const KeptCheckpoints& kept) {
  // Without a limit all stay.
  if (max_to_keep <= 0) return store.Prune(max_to_keep, newest);
  ASSIGN_OR_RETURN(const std::vector<int64_t> spared, StepsOf(kept, store));
  return store.Prune(max_to_keep, newest, spared);
}

}  // namespace

absl::Status StoreCheckpoint(CheckpointStore& store,
                             durable::CheckpointManifest manifest,
                             int max_to_keep, WriteShardFiles write_files,
                             CheckOwner check_owner,
                             absl::FunctionRef<KeptCheckpoints()> kept) {
  RETURN_IF_ERROR(check_owner());
  ASSIGN_OR_RETURN(const std::string directory,
                   store.Begin(manifest.global_step()));
  absl::Status status = write_files(directory, manifest);
  const absl::Status owner = check_owner();
  // The next owner removes what is left of the checkpoint.
  if (absl::IsFailedPrecondition(owner)) return owner;
  if (status.ok()) status = owner;
  if (status.ok()) status = store.Commit(directory, manifest);
  if (!status.ok()) {
    store.Abandon(directory);
    return status;
  }
  // What could not be removed is removed next time.
  absl::Status pruned = check_owner();
  if (pruned.ok()) {
    pruned = PruneTo(store, max_to_keep, manifest.global_step(), kept());
  }
  if (!pruned.ok()) LOG(WARNING) << "old checkpoints: " << pruned.message();
  return absl::OkStatus();
}

absl::Status WriteFirstCheckpoint(const FirstRun& run, CheckpointStore& store,
                                  CheckOwner check_owner,
                                  WriteFirstShard write) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(0);
  manifest.set_run_id(run.run_id);
  *manifest.mutable_job() = run.job;
  run.contents.AddTo(manifest);
  manifest.set_created_unix_micros(absl::ToUnixMicros(run.now));
  return StoreCheckpoint(
      store, std::move(manifest), /*max_to_keep=*/0,
      [&write](const std::string& directory,
               durable::CheckpointManifest& files) -> absl::Status {
        ASSIGN_OR_RETURN(
            const std::unique_ptr<ShardWriter> writer,
            ShardWriter::Create(absl::StrCat(directory, "/", kFirstFile)));
        RETURN_IF_ERROR(write(*writer));
        ASSIGN_OR_RETURN(*files.add_file(), writer->Finish());
        return absl::OkStatus();
      },
      check_owner);
}

}  // namespace parasol
