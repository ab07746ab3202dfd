#include "coordinator/taken_run.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/disk_patience.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/checkpoint/run_history.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/checkpoint/warm_start.h"
#include "cluster/job/durability.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/journal_reader.h"

namespace parasol {
namespace {

// A directory that can't be used is bad configuration.
absl::Status AsConfiguration(const absl::Status& status) {
  if (status.ok() || MayPass(status) || absl::IsCancelled(status)) {
    return status;
  }
  return absl::InvalidArgumentError(status.message());
}

// What the checkpoints in the directory say about the run, if there are any. A
// new run that begins warm, or with values of its own, gets one.
absl::Status ResumeFrom(const TakeRunOptions& take, CheckOwner check_owner,
                        absl::Time now, CheckpointStore& store,
                        CoordinatorOptions& options) {
  const Verification verification = {
      .on_begin =
          [&take](const std::string& path) {
            take.on_trouble(absl::StrCat("verifying ", path));
          },
      .cancelled = take.cancelled};
  ASSIGN_OR_RETURN(
      ResumedRun run,
      ResumeIntactRun(store, options.job, options.contents, verification));
  if (!run.checkpoint && options.job.has_warm_start()) {
    RETURN_IF_ERROR(WriteWarmStart({.run_id = run.run_id,
                                    .job = options.job,
                                    .variables = take.variables,
                                    .contents = options.contents,
                                    .now = now},
                                   store, check_owner));
    ASSIGN_OR_RETURN(run, ResumeRun(store, options.job, options.contents));
  } else if (!run.checkpoint && take.first_values != nullptr) {
    RETURN_IF_ERROR(WriteFirstCheckpoint({.run_id = run.run_id,
                                          .job = options.job,
                                          .contents = options.contents,
                                          .now = now},
                                         store, check_owner,
                                         take.first_values));
    ASSIGN_OR_RETURN(run, ResumeRun(store, options.job, options.contents));
  }
  options.run_id = std::move(run.run_id);
  options.already_complete = run.is_complete;
  options.resumed = std::move(run.checkpoint);
  if (options.resumed) {
    options.resumed_from = store.PathOf(options.resumed->global_step());
  }
  options.damaged_checkpoints = std::move(run.damaged);
  return absl::OkStatus();
}

// Requires that the ps take the journals that the checkpoint's shards have kept
// since. Those in a --journal_dir only the ps see.
//   InvalidArgument  they would be left out, with acknowledged pushes.
absl::Status CheckJournals(const std::string& directory,
                           const CoordinatorOptions& options) {
  const std::string folder = JoinedPath(directory, "journal");
  if (!options.resumed || IsUri(directory)) return absl::OkStatus();
  const absl::Status there = ListDirectory(folder).status();
  if (absl::IsNotFound(there)) return absl::OkStatus();
  RETURN_IF_ERROR(AsConfiguration(there));
  const auto reader = CheckpointReader::Open(options.resumed_from);
  // Whoever loads it says what is wrong with it.
  if (!reader.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<ShardJournal> journals,
                   (*reader)->Journals());
  for (const ShardJournal& journal : journals) {
    if (KeepsJournals(options.job) &&
        journal.shard.num_shards == NumPsShards(options)) {
      continue;
    }
    const std::string path =
        JournalPath(directory, journal.shard.shard, journal.shard.num_shards);
    ASSIGN_OR_RETURN(const bool has_records,
                     JournalReader::HasRecordsBehind(path, journal.place));
    if (!has_records) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has acknowledged pushes that the newest checkpoint, of step ",
        options.resumed->global_step(),
        ", lacks, and this job would leave them out: start it once with ",
        journal.shard.num_shards, " ps and parameter_server.durability ",
        job::ParameterServerStrategy::Durability_Name(
            options.resumed->job().parameter_server().durability()),
        ", as it was, and stop it in good order; or, to give them up, remove ",
        folder));
  }
  return absl::OkStatus();
}

// Makes one attempt.
absl::StatusOr<CheckpointStore> TryResume(
    const TakeRunOptions& take, Clock& clock, Clock& owner_clock,
    std::unique_ptr<DirectoryOwnership>& ownership,
    CoordinatorOptions& options) {
  if (ownership == nullptr) {
    auto taken = DirectoryOwnership::Take({.directory = take.directory,
                                           .job_name = options.job.name(),
                                           .lease = take.directory_lease,
                                           .cancelled = take.cancelled,
                                           .on_wait = take.on_trouble},
                                          owner_clock);
    RETURN_IF_ERROR(AsConfiguration(taken.status()));
    ownership = *std::move(taken);
    take.on_trouble("");
  } else {
    // Since the attempt before, another one may have taken it.
    RETURN_IF_ERROR(ownership->Check());
  }
  const auto check_owner = [&ownership] { return ownership->Check(); };
  absl::StatusOr<CheckpointStore> store =
      CheckpointStore::OpenForWriting(take.directory, check_owner);
  // It is lost, which is nobody's mistake.
  if (absl::IsFailedPrecondition(store.status())) return store.status();
  RETURN_IF_ERROR(AsConfiguration(store.status()));
  RETURN_IF_ERROR(ResumeFrom(take, check_owner, clock.Now(), *store, options));
  RETURN_IF_ERROR(CheckJournals(take.directory, options));
  if (!GoesByEvaluations(options.job)) return store;
  const RunHistory history(options.resumed, ownership->chief_epoch());
  ASSIGN_OR_RETURN(options.evaluations,
                   ReadEvaluations(take.directory, options.run_id,
                                   [&history](const Evaluation& evaluation) {
                                     return history.Has(evaluation);
                                   }));
  return store;
}

}  // namespace

absl::StatusOr<TakenRun> TakeRun(const TakeRunOptions& options, Clock& clock,
                                 Clock& owner_clock,
                                 CoordinatorOptions& coordinator) {
  DiskPatience patience({.full_limit = options.full_limit,
                         .cancelled = options.cancelled,
                         .on_trouble = options.on_trouble},
                        clock);
  std::unique_ptr<DirectoryOwnership> ownership;
  absl::StatusOr<CheckpointStore> store =
      TryResume(options, clock, owner_clock, ownership, coordinator);
  while (!store.ok()) {
    RETURN_IF_ERROR(patience.Failed(store.status()));
    store = TryResume(options, clock, owner_clock, ownership, coordinator);
  }
  coordinator.chief_epoch = ownership->chief_epoch();
  const bool is_same_run = ownership->run_at_start() == coordinator.run_id;
  for (const durable::PlaceEpoch& place : ownership->ps_at_start()) {
    coordinator.ps_epochs[place.index()] = place.place_epoch();
    if (!is_same_run) continue;
    coordinator.standbys[place.index()] = place.standby();
    if (place.has_acting_host()) {
      coordinator.acting_hosts[place.index()] = place.acting_host();
    }
  }
  return TakenRun{std::move(ownership), *std::move(store)};
}

}  // namespace parasol
