#include "worker/local_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Number of floats in a block of rows, and so in an entry of a checkpoint: 16
// KiB.
constexpr size_t kBlockFloats = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<LocalRows>> LocalRows::Create(
    const job::SparseTable& table, const job::Optimizer& of_job,
    uint64_t seed) {
  if (table.width() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", table.name(), ": its width is ", table.width()));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<const Optimizer> optimizer,
      MakeOptimizer(table.has_optimizer() ? table.optimizer() : of_job),
      _ << "table " << table.name());
  ASSIGN_OR_RETURN(RowInitializer initializer,
                   RowInitializer::Create(table.initializer(), seed,
                                          table.name(), table.width()),
                   _ << "table " << table.name());
  return std::unique_ptr<LocalRows>(new LocalRows(
      table.name(), table.width(), initializer, std::move(optimizer)));
}

LocalRows::LocalRows(std::string name, size_t width, RowInitializer initializer,
                     std::unique_ptr<const Optimizer> optimizer)
    : name_(std::move(name)),
      width_(width),
      initializer_(initializer),
      optimizer_(std::move(optimizer)),
      floats_(width * (1 + optimizer_->slot_names().size())),
      rows_per_block_(std::max<size_t>(1, kBlockFloats / floats_)) {}

void LocalRows::Pull(absl::Span<const uint64_t> ids, absl::Span<float> values) {
  CHECK_EQ(values.size(), ids.size() * width_) << name_;
  for (size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(Row(FindOrMake(ids[i])), width_, values.data() + i * width_);
  }
}

void LocalRows::Push(absl::Span<const uint64_t> ids,
                     absl::Span<const float> gradients) {
  CHECK_EQ(gradients.size(), ids.size() * width_) << name_;
  absl::flat_hash_map<size_t, size_t> places;  // key: the row's number
  std::vector<float> sums;
  std::vector<size_t> rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto gradient = gradients.subspan(i * width_, width_);
    const size_t number = FindOrMake(ids[i]);
    const auto [place, is_first] = places.try_emplace(number, rows.size());
    if (is_first) {
      rows.push_back(number);
      sums.insert(sums.end(), gradient.begin(), gradient.end());
      continue;
    }
    float* const sum = sums.data() + place->second * width_;
    for (size_t j = 0; j < width_; ++j) sum[j] += gradient[j];
  }
  std::vector<float*> memory;
  for (const size_t number : rows) memory.push_back(Row(number));
  optimizer_->ApplyRows(
      updates_, {.count = memory.size(),
                 .width = width_,
                 .gradients = reinterpret_cast<const std::byte*>(sums.data()),
                 .rows = memory.data()});
  if (optimizer_->other_rows() != Optimizer::OtherRows::kUntouched) {
    std::vector<bool> touched(ids_.size());
    for (const size_t number : rows) touched[number] = true;
    UpdateOtherRows(touched);
  }
  ++updates_;
}

void LocalRows::UpdateOtherRows(const std::vector<bool>& touched) {
  std::vector<float*> rows;
  for (size_t number = 0; number < touched.size(); ++number) {
    if (!touched[number]) rows.push_back(Row(number));
  }
  optimizer_->ApplyOtherRows(
      updates_, {.count = rows.size(), .width = width_, .rows = rows.data()});
}

size_t LocalRows::FindOrMake(uint64_t id) {
  const auto known = numbers_.find(id);
  if (known != numbers_.end()) return known->second;
  const size_t number = Add(id);
  float* const row = Row(number);
  initializer_.Fill(id, row);
  for (size_t slot = 0; slot < optimizer_->slot_names().size(); ++slot) {
    std::fill_n(row + (1 + slot) * width_, width_,
                optimizer_->InitialSlotValue(slot));
  }
  return number;
}

size_t LocalRows::Add(uint64_t id) {
  const size_t number = ids_.size();
  if (number % rows_per_block_ == 0) {
    blocks_.push_back(
        std::make_unique_for_overwrite<float[]>(rows_per_block_ * floats_));
  }
  numbers_[id] = number;
  ids_.push_back(id);
  return number;
}

absl::Status LocalRows::Save(ShardWriter& writer) const {
  // A table without rows has its updates all the same.
  if (ids_.empty()) return writer.AddRows(name_, {.updates = updates_});
  for (size_t first = 0; first < ids_.size(); first += rows_per_block_) {
    const auto ids = absl::MakeConstSpan(ids_).subspan(first, rows_per_block_);
    RETURN_IF_ERROR(writer.AddRows(
        name_,
        {.updates = updates_,
         .ids = ids,
         .rows = absl::MakeConstSpan(Row(first), ids.size() * floats_)}));
  }
  return absl::OkStatus();
}

absl::Status LocalRows::Restore(const CheckpointReader& checkpoint) {
  for (const durable::CheckpointTable& saved : checkpoint.manifest().table()) {
    if (saved.name() != name_) continue;
    const std::vector<std::string>& slots = optimizer_->slot_names();
    if (saved.width() == width_ &&
        std::equal(saved.slot().begin(), saved.slot().end(), slots.begin(),
                   slots.end())) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", name_, " has rows of width ", saved.width(), " and slots [",
        absl::StrJoin(saved.slot(), ", "), "], the job's ", width_, " and [",
        absl::StrJoin(slots, ", "), "]"));
  }
  return checkpoint.ReadRows(
      name_, [this](const RowBatch& batch) { return Insert(batch); });
}

absl::Status LocalRows::Insert(const RowBatch& batch) {
  if (batch.rows.size() != batch.ids.size() * floats_) {
    return absl::DataLossError(
        absl::StrCat("the checkpoint has ", batch.rows.size(), " float32 for ",
                     batch.ids.size(), " rows of table ", name_));
  }
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const uint64_t id = batch.ids[i];
    if (numbers_.contains(id)) {
      return absl::DataLossError(absl::StrCat("the checkpoint has row ", id,
                                              " of table ", name_, " twice"));
    }
    std::copy_n(batch.rows.data() + i * floats_, floats_, Row(Add(id)));
  }
  updates_ = std::max(updates_, batch.updates);
  return absl::OkStatus();
}

durable::CheckpointTable LocalRows::Describe() const {
  durable::CheckpointTable described;
  described.set_name(name_);
  described.set_width(width_);
  for (const std::string& slot : optimizer_->slot_names()) {
    described.add_slot(slot);
  }
  return described;
}

}  // namespace parasol
