#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/write_shard.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

// The file of a complete checkpoint that SnapshotRequest.since names.
struct NamedFile {
  int64_t step = 0;
  std::string name;
};

absl::StatusOr<std::optional<NamedFile>> FileOf(absl::string_view since) {
  if (since.empty()) return std::nullopt;
  const size_t slash = since.find('/');
  if (slash != since.npos) {
    const absl::string_view name = since.substr(slash + 1);
    const auto step = StepOfName(since.substr(0, slash));
    if (step.has_value() && IsPlainName(name)) {
      return NamedFile{.step = *step, .name = std::string(name)};
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the snapshot request asks for changes since \"", since,
                   "\", which is no file of a checkpoint"));
}

}  // namespace

void ParameterServer::Shard::ForgetWhatIsSaved() {
  if (!saved_journal.has_value() || !saved->Has(/*progress=*/0)) return;
  parameters->journal()->NoteComplete(*saved_journal);
}

absl::StatusOr<wire::SnapshotResponse> ParameterServer::Snapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  RETURN_IF_ERROR(gate_.Check(request.order()));
  RETURN_IF_ERROR(
      gate_.CheckSnapshotFile(request.directory(), request.file_name()));
  RETURN_IF_ERROR(BeginSnapshot(request.file_name()));
  absl::Cleanup end = [this] {
    absl::MutexLock lock(&mu_);
    snapshot_file_.clear();
  };
  const absl::Time start = clock_.Now();
  absl::StatusOr<wire::SnapshotResponse> response =
      WriteSnapshot(request, is_cancelled);
  Trace("snapshot", start, response.ok() ? response->bytes() : 0);
  if (response.ok()) {
    metrics_.snapshots_total.Add();
    metrics_.snapshot_duration_seconds.Observe(
        absl::ToDoubleSeconds(clock_.Now() - start));
  } else {
    metrics_.failed_snapshots_total.Add();
  }
  return response;
}

absl::Status ParameterServer::BeginSnapshot(const std::string& file_name) {
  absl::MutexLock lock(&mu_);
  if (!snapshot_file_.empty()) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " is still writing ", snapshot_file_));
  }
  snapshot_file_ = file_name;
  snapshot_since_ = clock_.Now();
  return absl::OkStatus();
}

absl::StatusOr<ShardSnapshot> ParameterServer::TakeSnapshot(
    ParameterShard& parameters, const wire::SnapshotRequest& request,
    const SnapshotTurn& turn, const std::function<bool()>& is_cancelled) const {
  if (!request.has_at_updates()) {
    return parameters.TakeSnapshot(request.stay(), turn);
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<StepSnapshot> at_step,
      parameters.BeginSnapshotAt(request.at_updates(), request.stay(), turn));
  ASSIGN_OR_RETURN(ShardSnapshot snapshot, at_step->Wait(clock_, is_cancelled));
  snapshot.progress = request.at_updates();
  return snapshot;
}

const SnapshotBases::Base* ParameterServer::BaseOf(
    const wire::SnapshotRequest& request, const Shard& shard) {
  const auto since = FileOf(request.since());
  if (!since.ok() || !since->has_value()) return nullptr;
  const CheckpointStore store(ParentPath(request.directory()));
  const absl::StatusOr<durable::CheckpointManifest> manifest =
      store.ReadManifest((*since)->step);
  if (!manifest.ok()) {
    LOG(WARNING) << "writes all, for the checkpoint before can't be read: "
                 << manifest.status().message();
    return nullptr;
  }
  if (manifest->run_id() != request.run_id()) return nullptr;
  const SnapshotBases::Base* const base =
      shard.bases->Find(*manifest, (*since)->name);
  // Tables mark changes from the first snapshot on that was asked for them.
  if (base == nullptr || !shard.parameters->Marks(base->number)) return nullptr;
  return base;
}

absl::StatusOr<wire::SnapshotResponse> ParameterServer::WriteSnapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  const absl::StatusOr<std::shared_ptr<Shard>> found =
      ShardOf(request.run_id(), request.order().layout());
  if (!found.ok()) {
    return absl::FailedPreconditionError(found.status().message());
  }
  Shard& shard = **found;
  if (request.has_at_updates()) {
    RETURN_IF_ERROR(shard.parameters->CheckCut(request.at_updates()))
        << options_.task;
  }
  RETURN_IF_ERROR(FileOf(request.since()).status()) << options_.task;
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  shard.ForgetWhatIsSaved();
  // An earlier file may have all updates here, but not the other ps's.
  if (request.stay()) shard.saved->Await();
  const SnapshotBases::Base* const base = BaseOf(request, shard);
  SnapshotTurn turn;
  if (!request.since().empty() || shard.bases->is_marking()) {
    turn.number = shard.bases->NextNumber();
    if (base != nullptr) turn.since = base->number;
  }
  ASSIGN_OR_RETURN(ShardSnapshot snapshot,
                   TakeSnapshot(*shard.parameters, request, turn, is_cancelled),
                   _ << options_.task);
  const int64_t progress = snapshot.progress;
  const std::optional<JournalPlace> journal = snapshot.journal;
  SnapshotBases::Base taken = {.number = turn.number,
                               .chunk_updates = UpdatesOf(snapshot)};
  if (base != nullptr) {
    DropUnchanged(base->chunk_updates, snapshot);
    snapshot.base = {base->file.bytes(), base->file.crc32c()};
  }
  ASSIGN_OR_RETURN(durable::CheckpointFile file,
                   WriteShard(std::move(snapshot), shard.order.shard(),
                              shard.order.num_shards(),
                              CheckpointStore::PathInWorking(
                                  request.directory(), request.file_name())),
                   _ << options_.task);
  file.set_name(request.file_name());
  wire::SnapshotResponse response;
  response.set_bytes(file.bytes());
  response.set_crc32c(file.crc32c());
  response.set_is_increment(base != nullptr);
  taken.file = file;
  if (turn.number > 0) shard.bases->Note(std::move(taken));
  shard.saved->Note(request.directory(), request.run_id(), std::move(file),
                    progress);
  shard.saved_journal = journal;
  return response;
}

}  // namespace parasol
