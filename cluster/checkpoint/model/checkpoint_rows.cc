#include "cluster/checkpoint/model/checkpoint_rows.h"

#include <malloc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/rows/row_sample.h"

namespace parasol {
namespace {

// Bytes of rows that are sorted in memory at once on their way to a file, if
// the limit is below.
constexpr size_t kLeastRunBytes = 16 << 20;

// Bytes of a row's place in a run that is being sorted.
constexpr size_t kPlaceBytes = sizeof(HashedRow);

}  // namespace

absl::StatusOr<CheckpointRows> CheckpointRows::Create(
    const job::SparseTable& table, uint64_t seed) {
  ASSIGN_OR_RETURN(
      RowInitializer initializer,
      RowInitializer::Create(table.initializer(), seed, table.name(),
                             table.width(), table.values()),
      _ << "table " << table.name());
  return CheckpointRows(table.name(), table.width(), initializer);
}

absl::Status CheckpointRows::CheckWidth(
    const CheckpointReader& checkpoint) const {
  for (const durable::CheckpointTable& table : checkpoint.manifest().table()) {
    if (table.name() != name_ || table.width() == width_) continue;
    return absl::DataLossError(absl::StrCat("rows of table ", name_,
                                            " have width ", table.width(),
                                            ", the job's ", width_));
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::Load(const CheckpointReader& checkpoint,
                                  const Limits& limits) {
  in_memory_ = RowMap(width_);
  layers_.clear();
  file_ = nullptr;
  RETURN_IF_ERROR(CheckWidth(checkpoint));
  std::unique_ptr<RowFileWriter> writer;
  RETURN_IF_ERROR(ReadAll(checkpoint, limits, writer));
  if (writer == nullptr && in_memory_.BytesWith(0) <= limits.memory_bytes) {
    layers_.push_back(std::make_shared<const RowMap>(
        std::exchange(in_memory_, RowMap(width_))));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Spill(limits, writer));
  return FinishFile(*writer);
}

absl::Status CheckpointRows::LoadNewer(const CheckpointReader& checkpoint,
                                       const CheckpointRows& served,
                                       const durable::CheckpointManifest& older,
                                       const Limits& limits) {
  RETURN_IF_ERROR(CheckWidth(checkpoint));
  if (served.layers_.empty() || served.name_ != name_ ||
      served.width_ != width_) {
    return absl::FailedPreconditionError(
        absl::StrCat("table ", name_, ": its rows are not in memory"));
  }
  layers_ = served.layers_;
  // Stays all the while: the served version has the layers.
  const size_t held = memory_bytes();
  auto newer = std::make_shared<RowMap>(width_);
  const auto check_fit = [&](size_t bytes) -> absl::Status {
    if (held + bytes <= limits.memory_bytes) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("table ", name_, ": its rows do not fit in memory"));
  };
  const auto add = [&](const RowBatch& batch) -> absl::Status {
    RETURN_IF_ERROR(check_fit(newer->BytesWith(batch.ids.size())));
    return SetAll(batch, *newer);
  };
  std::vector<float> initial(width_);
  // An id without a row has these values, whatever older layers have.
  const auto remove = [&](absl::Span<const uint64_t> ids) -> absl::Status {
    RETURN_IF_ERROR(check_fit(newer->BytesWith(ids.size())));
    for (const uint64_t id : ids) {
      initializer_.Fill(id, initial.data());
      newer->Set(id, initial.data());
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(checkpoint.ReadNewerRows(older, name_, add, remove));
  while (!layers_.empty() && 2 * newer->rows() >= layers_[0]->rows()) {
    // The merged rows come beside both.
    RETURN_IF_ERROR(
        check_fit(newer->BytesWith(0) + newer->BytesWith(layers_[0]->rows())));
    auto merged = std::make_shared<RowMap>(width_);
    layers_[0]->CopyTo(*merged);
    newer->CopyTo(*merged);
    newer = std::move(merged);
    layers_.erase(layers_.begin());
  }
  RETURN_IF_ERROR(check_fit(newer->BytesWith(0)));
  layers_.insert(layers_.begin(), std::move(newer));
  return absl::OkStatus();
}

size_t CheckpointRows::memory_bytes() const {
  if (file_ != nullptr) return file_->memory_bytes();
  size_t bytes = 0;
  for (const auto& layer : layers_) bytes += layer->BytesWith(0);
  return bytes;
}

const float* CheckpointRows::Find(uint64_t id) const {
  for (const auto& layer : layers_) {
    if (const float* const row = layer->Find(id)) return row;
  }
  return nullptr;
}

absl::Status CheckpointRows::ReadAll(const CheckpointReader& checkpoint,
                                     const Limits& limits,
                                     std::unique_ptr<RowFileWriter>& writer) {
  RowSample sample(width_);
  RETURN_IF_ERROR(checkpoint.ReadRows(name_, [&](const RowBatch& batch) {
    if (limits.with_sample) {
      for (const uint64_t id : batch.ids) sample.Add(id);
    }
    return Insert(batch, limits, writer);
  }));
  sampled_ = sample.Ids();
  return absl::OkStatus();
}

absl::Status CheckpointRows::SetAll(const RowBatch& batch, RowMap& rows) const {
  if (batch.ids.empty()) return absl::OkStatus();
  const size_t floats = batch.rows.size() / batch.ids.size();
  if (floats < width_) {
    return absl::DataLossError(
        absl::StrCat("rows of table ", name_, " have ", floats, " float32"));
  }
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    rows.Set(batch.ids[i], &batch.rows[i * floats]);
  }
  return absl::OkStatus();
}

absl::Status CheckpointRows::Insert(const RowBatch& batch, const Limits& limits,
                                    std::unique_ptr<RowFileWriter>& writer) {
  const bool is_limited = limits.memory_bytes != SIZE_MAX;
  const size_t more = batch.ids.size();
  if (is_limited && in_memory_.rows() > 0 &&
      in_memory_.BytesWith(more) + (in_memory_.rows() + more) * kPlaceBytes >
          std::max(limits.memory_bytes, kLeastRunBytes)) {
    RETURN_IF_ERROR(Spill(limits, writer));
  }
  return SetAll(batch, in_memory_);
}

absl::Status CheckpointRows::Spill(const Limits& limits,
                                   std::unique_ptr<RowFileWriter>& writer) {
  if (writer == nullptr) {
    ASSIGN_OR_RETURN(writer, RowFileWriter::Create(limits.directory, width_),
                     _ << "table " << name_);
  }
  RETURN_IF_ERROR(writer->AddRun(in_memory_.Sorted())) << "table " << name_;
  in_memory_.Clear();
  return absl::OkStatus();
}

absl::Status CheckpointRows::FinishFile(RowFileWriter& writer) {
  in_memory_ = RowMap(width_);
  ASSIGN_OR_RETURN(file_, writer.Finish(), _ << "table " << name_);
  malloc_trim(0);  // or what the runs needed stays the process's
  LOG(INFO) << "table " << name_ << ": " << file_->rows() << " rows, "
            << file_->file_bytes() << " bytes, are read from a file";
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> CheckpointRows::Sample() {
  std::vector<float> values(sampled_.size() * width_);
  RETURN_IF_ERROR(Read(sampled_, absl::MakeSpan(values)));
  return values;
}

absl::Status CheckpointRows::Read(absl::Span<const uint64_t> ids,
                                  absl::Span<float> values) {
  CHECK_EQ(values.size(), ids.size() * width_) << name_;
  if (file_ != nullptr) {
    RETURN_IF_ERROR(file_->Read(
        ids, values,
        [this](uint64_t id, float* row) { initializer_.Fill(id, row); }))
        << "table " << name_;
    return absl::OkStatus();
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    float* const row = values.data() + i * width_;
    const float* const found = Find(ids[i]);
    if (found == nullptr) {
      initializer_.Fill(ids[i], row);
    } else {
      std::copy_n(found, width_, row);
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol
