#include "cluster/checkpoint/model/checkpoint_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<CheckpointModel>> CheckpointModel::Create(
    const job::Job& job, const Graph& graph, const Options& options) {
  std::unique_ptr<CheckpointModel> created(new CheckpointModel(options));
  ASSIGN_OR_RETURN(created->device_,
                   Device::Open(options.device, {.threads = options.threads}));
  ASSIGN_OR_RETURN(created->model_, Model::Create(graph, *created->device_));
  for (const job::SparseTable& table : job.model().sparse_table()) {
    ASSIGN_OR_RETURN(CheckpointRows rows,
                     CheckpointRows::Create(table, job.seed()));
    created->tables_.push_back(std::move(rows));
  }
  return created;
}

absl::StatusOr<durable::CheckpointManifest> CheckpointModel::LoadBehind(
    const CheckpointModel* served, const std::string& directory,
    VisitValues visit) {
  const CheckpointModel* const before = served != nullptr ? served : this;
  ASSIGN_OR_RETURN(std::unique_ptr<CheckpointReader> checkpoint,
                   CheckpointReader::Open(directory, before->reader_.get()));
  const std::vector<VariableSpec>& variables = model_->variables();
  for (size_t i = 0; i < variables.size(); ++i) {
    const absl::Status read =
        ReadEvaluated(*checkpoint, variables[i].name, model_->HostValue(i));
    if (absl::IsNotFound(read)) {
      return absl::DataLossError(absl::StrCat(directory, ": ", read.message()));
    }
    RETURN_IF_ERROR(read);
    visit(i, model_->HostValue(i));
    RETURN_IF_ERROR(model_->Upload(i));
  }
  shares_rows_ = served != nullptr && !tables_.empty() &&
                 FilesInCommon(served->loaded_, checkpoint->manifest());
  absl::Status read = LoadTables(shares_rows_ ? served : nullptr, *checkpoint);
  if (shares_rows_ && absl::IsFailedPrecondition(read)) {
    shares_rows_ = false;
    read = LoadTables(nullptr, *checkpoint);
  }
  if (absl::IsNotFound(read)) {
    return absl::DataLossError(absl::StrCat(directory, ": ", read.message()));
  }
  RETURN_IF_ERROR(read) << directory;
  RETURN_IF_ERROR(checkpoint->Verify());
  loaded_ = checkpoint->manifest();
  const bool is_continued =
      IsUri(directory) && loaded_.job().checkpoint().full_every() > 1;
  reader_ = is_continued ? std::move(checkpoint) : nullptr;
  return loaded_;
}

absl::Status CheckpointModel::LoadTables(const CheckpointModel* served,
                                         const CheckpointReader& checkpoint) {
  size_t free_bytes = options_.table_memory;
  for (size_t i = 0; i < tables_.size(); ++i) {
    CheckpointRows& table = tables_[i];
    const CheckpointRows::Limits limits = {
        .memory_bytes = free_bytes,
        .directory = options_.table_dir,
        .with_sample = options_.with_samples};
    if (served == nullptr) {
      RETURN_IF_ERROR(table.Load(checkpoint, limits));
    } else if (i >= served->tables_.size() || limits.with_sample) {
      return absl::FailedPreconditionError("has other tables, or samples");
    } else {
      RETURN_IF_ERROR(table.LoadNewer(checkpoint, served->tables_[i],
                                      served->loaded_, limits));
    }
    if (options_.table_memory != SIZE_MAX && !table.is_in_file()) {
      free_bytes -= std::min(free_bytes, table.memory_bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointModel::ReadRows(
    absl::Span<const StagedBatch::Rows> tables) {
  for (const StagedBatch::Rows& rows : tables) {
    RETURN_IF_ERROR(tables_[rows.table].Read(rows.ids, rows.values));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> CheckpointModel::Outputs(
    const Batch& batch) {
  if (staged_ == nullptr) staged_ = model_->NewStagedBatch();
  RETURN_IF_ERROR(model_->Stage(batch, *staged_));
  RETURN_IF_ERROR(ReadRows(staged_->rows()));
  ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model_->Evaluate(*staged_));
  return evaluated.outputs;
}

}  // namespace parasol
