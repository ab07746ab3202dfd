#include "evaluator/checkpoint_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<CheckpointRows> CheckpointRows::Create(
    const job::SparseTable& table, uint64_t seed) {
  ASSIGN_OR_RETURN(RowInitializer initializer,
                   RowInitializer::Create(table.initializer(), seed,
                                          table.name(), table.width()),
                   _ << "table " << table.name());
  return CheckpointRows(table.name(), table.width(), initializer);
}

absl::Status CheckpointRows::Load(const CheckpointReader& checkpoint) {
  places_.clear();
  values_.clear();
  for (const durable::CheckpointTable& table : checkpoint.manifest().table()) {
    if (table.name() != name_ || table.width() == width_) continue;
    return absl::DataLossError(absl::StrCat("rows of table ", name_,
                                            " have width ", table.width(),
                                            ", the job's ", width_));
  }
  return checkpoint.ReadRows(
      name_, [this](const RowBatch& batch) { return Insert(batch); });
}

absl::Status CheckpointRows::Insert(const RowBatch& batch) {
  if (batch.ids.empty()) return absl::OkStatus();
  const size_t floats = batch.rows.size() / batch.ids.size();
  if (floats < width_) {
    return absl::DataLossError(
        absl::StrCat("rows of table ", name_, " have ", floats, " float32"));
  }
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    places_[batch.ids[i]] = values_.size();
    const auto values = batch.rows.subspan(i * floats, width_);
    values_.insert(values_.end(), values.begin(), values.end());
  }
  return absl::OkStatus();
}

void CheckpointRows::Read(absl::Span<const uint64_t> ids,
                          absl::Span<float> values) const {
  CHECK_EQ(values.size(), ids.size() * width_) << name_;
  for (size_t i = 0; i < ids.size(); ++i) {
    float* const row = values.data() + i * width_;
    const auto place = places_.find(ids[i]);
    if (place == places_.end()) {
      initializer_.Fill(ids[i], row);
    } else {
      std::copy_n(values_.data() + place->second, width_, row);
    }
  }
}

}  // namespace parasol
