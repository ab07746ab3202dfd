#include "cluster/checkpoint/warm_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "cluster/checkpoint/checkpoint_argument.h"
#include "cluster/checkpoint/evaluated_array.h"
#include "cluster/checkpoint/warm_tensors.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/shard_entry.h"
#include "storage/tensor_files/tensor_format.h"

namespace parasol {
namespace {

// What another path or file would mend is a fault of the job.
absl::Status AsFaultOfJob(const absl::Status& status) {
  if (!absl::IsNotFound(status) && !absl::IsDataLoss(status) &&
      !absl::IsFailedPrecondition(status)) {
    return status;
  }
  return absl::InvalidArgumentError(status.message());
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
    const absl::StatusOr<int> array = EvaluatedArray(*checkpoint_, of_manifest);
    if (!array.ok()) return AsFaultOfJob(array.status());
    return AsFaultOfJob(
        checkpoint_->ReadElements(of_manifest.name(), *array, first, out)
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

bool IsFolderInStore(const std::string& uri) {
  const absl::StatusOr<ObjectUri> parts = ParseObjectUri(uri);
  if (!parts.ok()) return false;
  const auto store = ObjectStore::Open(*parts);
  if (!store.ok()) return false;
  const absl::StatusOr<ObjectEntry> entry = (*store)->Find(parts->path);
  return entry.ok() && entry->is_folder;
}

// Returns the path of what a URI names: a checkpoint, or a file of other
// programs, of which alone a web server has any.
absl::StatusOr<std::string> Brought(const std::string& uri) {
  if (IsWebUrl(uri)) return ObjectCache::OfProcess().BringNamed(uri);
  absl::StatusOr<std::string> directory = CheckpointAt(uri);
  if (absl::IsNotFound(directory.status()) && !IsFolderInStore(uri)) {
    return ObjectCache::OfProcess().BringNamed(uri);
  }
  return directory;
}

absl::StatusOr<std::unique_ptr<WarmSource>> OpenInStore(
    const std::string& uri) {
  const absl::StatusOr<std::string> path = Brought(uri);
  if (!path.ok()) return AsFaultOfJob(path.status());
  return WarmSource::Open(*path);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WarmSource>> WarmSource::Open(
    const std::string& path) {
  if (IsUri(path)) return OpenInStore(path);
  const bool is_best = DirectoryOfBest(path).has_value();
  const absl::StatusOr<TensorFormat> format = FormatOfFilesAt(path);
  if (!is_best && format.ok()) {
    absl::StatusOr<std::unique_ptr<WarmSource>> tensors =
        OpenWarmTensors(*format, path);
    if (!tensors.ok()) return AsFaultOfJob(tensors.status());
    return tensors;
  }
  if (!is_best && FileSize(path).ok()) return AsFaultOfJob(format.status());
  const absl::StatusOr<std::string> directory = CheckpointAt(path);
  if (!directory.ok()) return AsFaultOfJob(directory.status());
  absl::StatusOr<std::unique_ptr<CheckpointReader>> checkpoint =
      CheckpointReader::Open(*directory);
  if (!checkpoint.ok()) return AsFaultOfJob(checkpoint.status());
  return std::make_unique<CheckpointSource>(*directory, *std::move(checkpoint));
}

}  // namespace parasol
