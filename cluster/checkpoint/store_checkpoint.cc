#include "cluster/checkpoint/store_checkpoint.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "storage/checkpoint_manifest.h"

namespace parasol {
namespace {

constexpr char kFirstFile[] = "first-0.sst";

bool HasIncrements(const durable::CheckpointManifest& manifest) {
  return std::any_of(manifest.file().begin(), manifest.file().end(),
                     [](const auto& file) { return file.increment() > 0; });
}

// Nobody goes back to a checkpoint whose manifest can't be read for one of
// these; any other may only be out of reach.
bool IsNoCheckpoint(const absl::Status& manifest) {
  return absl::IsDataLoss(manifest) || absl::IsNotFound(manifest) ||
         absl::IsFailedPrecondition(manifest);
}

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

// Adds the steps of the store's checkpoints that stay beside the newest ones,
// whoever awaits them, up to the one of `newest`.
absl::Status AddKept(const CheckpointStore& store, const Retention& retention,
                     const durable::CheckpointManifest& newest,
                     std::vector<int64_t>& spared) {
  const bool keeps_by_time = retention.keep_every < absl::InfiniteDuration();
  const bool may_share =
      HasIncrements(newest) || newest.job().checkpoint().full_every() > 1;
  if (!keeps_by_time && !may_share) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
  std::vector<durable::CheckpointManifest> manifests;
  for (const int64_t step : steps) {
    if (step > newest.global_step()) break;
    auto manifest = store.ReadManifest(step);
    if (IsNoCheckpoint(manifest.status())) continue;
    RETURN_IF_ERROR(manifest.status());
    manifests.push_back(*std::move(manifest));
  }
  if (keeps_by_time) {
    const std::vector<int64_t> kept =
        KeptByTime(manifests, retention.keep_every);
    spared.insert(spared.end(), kept.begin(), kept.end());
  }
  if (const std::optional<int64_t> apart = NewestApart(manifests)) {
    spared.push_back(*apart);
  }
  return absl::OkStatus();
}

absl::Status PruneTo(CheckpointStore& store, const Retention& retention,
                     const durable::CheckpointManifest& newest,
                     const KeptCheckpoints& kept, CheckOwner check_owner) {
  const int64_t step = newest.global_step();
  // Without a limit all stay.
  if (retention.max_to_keep <= 0) return store.Prune(0, step, {}, check_owner);
  ASSIGN_OR_RETURN(std::vector<int64_t> spared, StepsOf(kept, store));
  RETURN_IF_ERROR(AddKept(store, retention, newest, spared));
  return store.Prune(retention.max_to_keep, step, spared, check_owner);
}

}  // namespace

Retention RetentionOf(const job::CheckpointPolicy& policy) {
  Retention retention = {.max_to_keep = policy.max_to_keep()};
  if (policy.has_keep_every_hours()) {
    retention.keep_every = absl::Hours(policy.keep_every_hours());
  }
  return retention;
}

std::vector<int64_t> KeptByTime(
    absl::Span<const durable::CheckpointManifest> manifests,
    absl::Duration keep_every) {
  std::vector<int64_t> kept;
  absl::Time next = absl::InfinitePast();
  for (const durable::CheckpointManifest& manifest : manifests) {
    const absl::Time written =
        absl::FromUnixMicros(manifest.created_unix_micros());
    if (written < next) continue;
    kept.push_back(manifest.global_step());
    next = written + keep_every;
  }
  return kept;
}

bool ShareFiles(const durable::CheckpointManifest& a,
                const durable::CheckpointManifest& b) {
  return std::any_of(a.file().begin(), a.file().end(), [&b](const auto& file) {
    return std::any_of(
        b.file().begin(), b.file().end(),
        [&file](const auto& other) { return IsSameFile(file, other); });
  });
}

std::optional<int64_t> NewestApart(
    absl::Span<const durable::CheckpointManifest> manifests) {
  if (std::none_of(manifests.begin(), manifests.end(), HasIncrements)) {
    return std::nullopt;
  }
  const auto apart = std::find_if_not(
      manifests.rbegin(), manifests.rend(), [&manifests](const auto& manifest) {
        return ShareFiles(manifest, manifests.back());
      });
  if (apart == manifests.rend()) return std::nullopt;
  return apart->global_step();
}

absl::Status StoreCheckpoint(CheckpointStore& store,
                             durable::CheckpointManifest manifest,
                             const Retention& retention,
                             WriteShardFiles write_files,
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
  if (status.ok()) status = store.Commit(directory, manifest, check_owner);
  if (!status.ok()) {
    store.Abandon(directory, check_owner);
    return status;
  }
  // What could not be removed is removed next time.
  absl::Status pruned = check_owner();
  if (pruned.ok()) {
    pruned = PruneTo(store, retention, manifest, kept(), check_owner);
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
      store, std::move(manifest), Retention(),
      [&write](const std::string& directory,
               durable::CheckpointManifest& files) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<ShardWriter> writer,
                         ShardWriter::Create(CheckpointStore::PathInWorking(
                             directory, CheckpointStore::NameInWorking(
                                            directory, kFirstFile))));
        RETURN_IF_ERROR(write(*writer));
        ASSIGN_OR_RETURN(*files.add_file(), writer->Finish());
        return absl::OkStatus();
      },
      check_owner);
}

}  // namespace parasol
