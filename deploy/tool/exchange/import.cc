#include "deploy/tool/exchange/import.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "deploy/tool/exchange/import_match.h"
#include "deploy/tool/exchange/imported_shard.h"
#include "deploy/tool/exchange/pytorch_tensors.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_ownership.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

constexpr char kShardFile[] = "import-0.sst";

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
  if (static_cast<int64_t>(number) >= 0) return static_cast<int64_t>(number);
  return absl::DataLossError(absl::StrCat("tensor ", info.name, " is ",
                                          static_cast<int64_t>(number),
                                          "; it counts and can't be negative"));
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
  if (!match.iterations) progress.updates = progress.step;
  if (step) progress.step = *step;
  return progress;
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

// Stores the checkpoint in a directory that has none, as a new run.
absl::Status StoreIn(const std::string& directory,
                     durable::CheckpointManifest manifest,
                     const CheckpointContents& contents,
                     WriteShardFiles write_files, Clock& clock) {
  const job::Job& job = manifest.job();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<DirectoryOwnership> ownership,
      DirectoryOwnership::Take({.directory = directory, .job_name = job.name()},
                               clock));
  ASSIGN_OR_RETURN(CheckpointStore store,
                   CheckpointStore::OpenForWriting(directory));
  RETURN_IF_ERROR(RequireNoCheckpoints(store));
  ASSIGN_OR_RETURN(const ResumedRun run, ResumeRun(store, job, contents));
  manifest.set_run_id(run.run_id);
  return StoreCheckpoint(store, std::move(manifest), /*max_to_keep=*/0,
                         write_files, [&] { return ownership->Check(); });
}

}  // namespace

absl::StatusOr<Imported> Import(const std::string& path, const LoadedJob& job,
                                const ImportOptions& options, Clock& clock) {
  ASSIGN_OR_RETURN(const CheckpointContents contents,
                   ContentsOf(job.graph.variables, job.job));
  ASSIGN_OR_RETURN(std::unique_ptr<TensorReader> reader,
                   OpenTensors(options.format, path));
  ASSIGN_OR_RETURN(
      reader, TranslatePyTorch(std::move(reader), contents, job.job.model()),
      _ << path);
  ASSIGN_OR_RETURN(
      const ImportMatch match,
      MatchTensors(reader->tensors(), contents, job.job, options.allow_surplus),
      _ << path);
  ASSIGN_OR_RETURN(const Progress progress,
                   ProgressOf(*reader, match, options.step), _ << path);
  const auto write = [&](const std::string& directory,
                         durable::CheckpointManifest& files) -> absl::Status {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<ShardWriter> writer,
        ShardWriter::Create(absl::StrCat(directory, "/", kShardFile)));
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

}  // namespace parasol
