#include "tool/exchange/import.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/checkpoint/warm_start.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "storage/shard_writer.h"
#include "tool/exchange/foreign_tensors.h"
#include "tool/exchange/import_match.h"
#include "tool/exchange/imported_shard.h"
#include "tool/exchange/keras_weights.h"
#include "tool/exchange/pytorch_sequences.h"
#include "tool/exchange/pytorch_tensors.h"

namespace parasol {
namespace {

constexpr char kShardFile[] = "import-0.sst";
// Largest number of steps of a job: exact as a double.
constexpr uint64_t kMaxCount = uint64_t{1} << 53;

// The whole number in a scalar; `otherwise` if there is no tensor.
absl::StatusOr<int64_t> NumberIn(TensorReader& reader,
                                 std::optional<size_t> tensor,
                                 int64_t otherwise) {
  if (!tensor) return otherwise;
  const TensorInfo& info = reader.tensors()[*tensor];
  std::vector<char> bytes(BytesOf(info.type));
  RETURN_IF_ERROR(reader.Read(*tensor, 0, absl::MakeSpan(bytes)));
  uint64_t number = 0;
  ToUint64(info.type, bytes, absl::MakeSpan(&number, 1));
  if (number <= kMaxCount) return static_cast<int64_t>(number);
  return absl::DataLossError(
      absl::StrCat("tensor ", info.name, " is ", static_cast<int64_t>(number),
                   "; it counts, from 0 to ", kMaxCount));
}

// Steps that were done and updates that were made.
struct Progress {
  int64_t step = 0;
  int64_t updates = 0;
};

absl::StatusOr<Progress> ProgressOf(TensorReader& reader,
                                    const ImportMatch& match,
                                    std::optional<int64_t> step) {
  Progress progress;
  ASSIGN_OR_RETURN(progress.updates, NumberIn(reader, match.iterations, 0));
  ASSIGN_OR_RETURN(progress.step,
                   NumberIn(reader, match.global_step, progress.updates));
  if (step) progress.step = *step;
  if (!match.iterations) progress.updates = progress.step;
  // Slots that begin anew have had no updates: rules divide by what the number
  // says.
  if (match.lacks_all_slots) progress.updates = 0;
  return progress;
}

// Slots say how many updates they have had; without the number an optimizer
// would take them for new ones.
absl::Status CheckCounted(const ImportMatch& match,
                          std::optional<int64_t> step) {
  if (!match.has_slots || match.iterations || match.global_step || step) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the tensors have an optimizer's slots, but no number of updates; say it "
      "with --step");
}

// In synchronous training a step is an update of everything.
absl::Status CheckSteps(const Progress& progress, const job::Job& job) {
  if (!job.parameter_server().has_synchronous() ||
      progress.step == progress.updates) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "step ", progress.step, " after ", progress.updates,
      " updates: in synchronous training they are the same; use --step=",
      progress.updates));
}

// The manifest, but for the files.
durable::CheckpointManifest ManifestOf(const job::Job& job,
                                       const CheckpointContents& contents,
                                       const std::string& checkpoint_dir,
                                       int64_t step, absl::Time now) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  *manifest.mutable_job() = job;
  manifest.mutable_job()->mutable_checkpoint()->set_directory(checkpoint_dir);
  contents.AddTo(manifest);
  manifest.set_created_unix_micros(absl::ToUnixMicros(now));
  return manifest;
}

absl::Status RequireNoCheckpoints(const CheckpointStore& store) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store.ListSteps());
  if (steps.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--checkpoint_dir=", store.directory(), ": has ",
                   steps.size(), " checkpoints; name another directory"));
}

// A directory that has no checkpoint, taken for a new run.
struct TakenDirectory {
  std::unique_ptr<DirectoryOwnership> ownership;
  CheckpointStore store;
  std::string run_id;
};

absl::StatusOr<TakenDirectory> TakeEmpty(const std::string& directory,
                                         const job::Job& job,
                                         const CheckpointContents& contents,
                                         Clock& clock) {
  std::error_code ignored;  // what can't be seen can't be written either
  if (IsUri(directory) || std::filesystem::exists(directory, ignored)) {
    RETURN_IF_ERROR(RequireNoCheckpoints(CheckpointStore(directory)));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<DirectoryOwnership> ownership,
      DirectoryOwnership::Take({.directory = directory, .job_name = job.name()},
                               clock));
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(directory));
  RETURN_IF_ERROR(RequireNoCheckpoints(store));
  ASSIGN_OR_RETURN(const ResumedRun run, ResumeRun(store, job, contents));
  return TakenDirectory{.ownership = std::move(ownership),
                        .store = std::move(store),
                        .run_id = run.run_id};
}

// Stores the checkpoint in a directory that has none, as a new run.
absl::Status StoreIn(const std::string& directory,
                     durable::CheckpointManifest manifest,
                     const CheckpointContents& contents,
                     WriteShardFiles write_files, Clock& clock) {
  ASSIGN_OR_RETURN(TakenDirectory taken,
                   TakeEmpty(directory, manifest.job(), contents, clock));
  manifest.set_run_id(taken.run_id);
  return StoreCheckpoint(taken.store, std::move(manifest), Retention(),
                         write_files, [&] { return taken.ownership->Check(); });
}

}  // namespace

absl::StatusOr<Imported> Import(const std::string& path, const LoadedJob& job,
                                const ImportOptions& options, Clock& clock) {
  ASSIGN_OR_RETURN(const CheckpointContents contents,
                   ContentsOf(job.graph.variables, job.job));
  ASSIGN_OR_RETURN(std::unique_ptr<TensorReader> reader,
                   OpenTensors(options.format, path));
  if (options.format == TensorFormat::kKeras) {
    ASSIGN_OR_RETURN(reader,
                     NameKerasWeights(std::move(reader), contents, job.job,
                                      options.allow_surplus),
                     _ << path);
  }
  reader = TranslateForeign(std::move(reader), contents, job.job);
  ASSIGN_OR_RETURN(reader,
                   TranslatePyTorchSequences(std::move(reader), contents),
                   _ << path);
  ASSIGN_OR_RETURN(
      reader,
      TranslatePyTorch(std::move(reader), contents,
                       ChannelsFirstOrders(job.job.model(), job.graph)),
      _ << path);
  ASSIGN_OR_RETURN(
      const ImportMatch match,
      MatchTensors(reader->tensors(), contents, job.job, options.allow_surplus),
      _ << path);
  ASSIGN_OR_RETURN(const Progress progress,
                   ProgressOf(*reader, match, options.step), _ << path);
  RETURN_IF_ERROR(CheckCounted(match, options.step)) << path;
  RETURN_IF_ERROR(CheckSteps(progress, job.job)) << path;
  const auto write = [&](const std::string& directory,
                         durable::CheckpointManifest& files) -> absl::Status {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<ShardWriter> writer,
        ShardWriter::Create(CheckpointStore::PathInWorking(
            directory, CheckpointStore::NameInWorking(directory, kShardFile))));
    RETURN_IF_ERROR(WriteImportedShard(*reader, match, contents, job.job,
                                       progress.updates, *writer));
    ASSIGN_OR_RETURN(*files.add_file(), writer->Finish());
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(StoreIn(options.checkpoint_dir,
                          ManifestOf(job.job, contents, options.checkpoint_dir,
                                     progress.step, clock.Now()),
                          contents, write, clock));
  return Imported{
      .checkpoint =
          CheckpointStore(options.checkpoint_dir).PathOf(progress.step),
      .step = progress.step,
      .fresh_slots = match.lacks_all_slots};
}

absl::StatusOr<Imported> ImportWarmStart(const LoadedJob& job,
                                         const ImportOptions& options,
                                         Clock& clock) {
  if (!job.job.has_warm_start()) {
    return absl::InvalidArgumentError(
        "there is no PATH, and the job has no warm_start, which says where its "
        "values are; try --help");
  }
  ASSIGN_OR_RETURN(const CheckpointContents contents,
                   ContentsOf(job.graph.variables, job.job));
  // A source that can't be used takes no directory.
  RETURN_IF_ERROR(CheckWarmStart(job.job.warm_start(), contents));
  job::Job own = job.job;
  own.mutable_checkpoint()->set_directory(options.checkpoint_dir);
  ASSIGN_OR_RETURN(TakenDirectory taken,
                   TakeEmpty(options.checkpoint_dir, own, contents, clock));
  RETURN_IF_ERROR(WriteWarmStart({.run_id = taken.run_id,
                                  .job = own,
                                  .variables = job.graph.variables,
                                  .contents = contents,
                                  .now = clock.Now()},
                                 taken.store,
                                 [&] { return taken.ownership->Check(); }));
  return Imported{.checkpoint = taken.store.PathOf(0), .fresh_slots = true};
}

}  // namespace parasol
