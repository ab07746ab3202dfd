#include "cluster/checkpoint/warm_source.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "cluster/checkpoint/resume.h"
#include "cluster/checkpoint/warm_tensors.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// The name of the file that makes a directory a checkpoint.
constexpr char kManifest[] = "MANIFEST";

// What another path or file would mend is a fault of the job.
absl::Status AsFaultOfJob(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsDataLoss(status) &&
      !absl::IsFailedPrecondition(status)) {
    return status;
  }
  return absl::InvalidArgumentError(status.message());
}

absl::StatusOr<std::string> CheckpointAt(const std::string& path) {
  std::error_code error;
  if (fs::exists(fs::path(path) / kManifest, error)) return path;
  const CheckpointStore store(path);
  ASSIGN_OR_RETURN(const std::optional<durable::CheckpointManifest> newest,
                   FindCheckpoint(store));
  if (newest) return store.PathOf(newest->global_step());
  return absl::NotFoundError(
      absl::StrCat(path,
                   ": has no checkpoint; name one, or a directory that "
                   "has some"));
}

class CheckpointSource : public WarmSource {
 public:
  CheckpointSource(const std::string& path,
                   std::unique_ptr<CheckpointReader> checkpoint)
      : checkpoint_(std::move(checkpoint)) {
    description_ = absl::StrCat("checkpoint ", path);
    for (const auto& variable : checkpoint_->manifest().variable()) {
      variables_.push_back(
          {variable.name(),
           {variable.shape().begin(), variable.shape().end()}});
    }
    for (const auto& table : checkpoint_->manifest().table()) {
      tables_.push_back({table.name(), table.width()});
    }
  }

  absl::Status Read(size_t variable, int64_t first,
                    absl::Span<float> out) override {
    const auto& of_manifest =
        checkpoint_->manifest().variable(static_cast<int>(variable));
    const int array = EvaluatedArray(of_manifest);
    if (array != kValueArray) {
      const absl::StatusOr<int64_t> updates =
          checkpoint_->ReadElements(of_manifest.name(), array, first, out);
      if (!updates.ok()) return AsFaultOfJob(updates.status());
      // Before the first one there is no average.
      if (*updates > 0) return absl::OkStatus();
    }
    return AsFaultOfJob(
        checkpoint_->ReadElements(of_manifest.name(), kValueArray, first, out)
            .status());
  }

  absl::Status VisitRows(size_t table, RowsVisit visit) override {
    const size_t width = tables_[table].width;
    std::vector<float> rows;
    return AsFaultOfJob(checkpoint_->ReadRows(
        tables_[table].name, [&](const RowBatch& batch) -> absl::Status {
          const size_t count = batch.ids.size();
          if (count == 0) return absl::OkStatus();
          const size_t floats = batch.rows.size() / count;
          if (floats < width) {
            return absl::DataLossError(
                absl::StrCat(description_, ": table ", tables_[table].name,
                             " has rows of ", floats, " numbers, not ", width));
          }
          rows.resize(count * width);
          for (size_t i = 0; i < count; ++i) {
            std::copy_n(batch.rows.data() + i * floats, width,
                        rows.data() + i * width);
          }
          return visit(batch.ids, rows);
        }));
  }

  absl::Status Verify() override { return AsFaultOfJob(checkpoint_->Verify()); }

 private:
  const std::unique_ptr<CheckpointReader> checkpoint_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WarmSource>> WarmSource::Open(
    const std::string& path) {
  if (NamesTensors(path)) {
    absl::StatusOr<std::unique_ptr<WarmSource>> tensors = OpenWarmTensors(path);
    if (!tensors.ok()) return AsFaultOfJob(tensors.status());
    return tensors;
  }
  const absl::StatusOr<std::string> directory = CheckpointAt(path);
  if (!directory.ok()) return AsFaultOfJob(directory.status());
  absl::StatusOr<std::unique_ptr<CheckpointReader>> checkpoint =
      CheckpointReader::Open(*directory);
  if (!checkpoint.ok()) return AsFaultOfJob(checkpoint.status());
  return std::make_unique<CheckpointSource>(*directory, *std::move(checkpoint));
}

}  // namespace parasol
