#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ml/optimizer/clip.h"
#include "ml/optimizer/device/table_update.h"

namespace parasol::cpu {
namespace {

class CpuTableUpdate final : public TableUpdate {
 public:
  CpuTableUpdate(const Optimizer& optimizer, const job::Optimizer& limits)
      : optimizer_(optimizer), limits_(limits) {}

  absl::Status Apply(int64_t iterations,
                     absl::Span<const Table> tables) override {
    for (const Table& table : tables) {
      Clip(absl::MakeSpan(table.rows->gradients, table.elements));
      UpdateRows(iterations, table);
      if (optimizer_.other_rows() == Optimizer::OtherRows::kUntouched) continue;
      UpdateOtherRows(iterations, table);
    }
    return absl::OkStatus();
  }

 private:
  void Clip(absl::Span<float> gradient) {
    if (limits_.has_clipvalue()) ClipByValue(limits_.clipvalue(), gradient);
    if (limits_.has_clipnorm()) ClipByNorm(limits_.clipnorm(), gradient);
    if (!limits_.has_global_clipnorm()) return;
    const std::array<absl::Span<float>, 1> all = {gradient};
    ClipByGlobalNorm(limits_.global_clipnorm(), all);
  }

  void UpdateRows(int64_t iterations, const Table& table) {
    const TableRows& rows = *table.rows;
    addresses_.clear();
    for (int64_t i = 0; i < table.elements / rows.width; ++i) {
      addresses_.push_back(rows.blocks.row(rows.numbers[i]));
    }
    optimizer_.ApplyRows(iterations, UpdateOf(rows));
  }

  void UpdateOtherRows(int64_t iterations, const Table& table) {
    const TableRows& rows = *table.rows;
    const int32_t mark = MarkOfUpdate(iterations);
    for (int64_t i = 0; i < table.elements / rows.width; ++i) {
      *rows.blocks.mark(rows.numbers[i]) = mark;
    }
    addresses_.clear();
    for (int32_t number = 0; number < table.num_rows; ++number) {
      if (*rows.blocks.mark(number) == mark) continue;
      addresses_.push_back(rows.blocks.row(number));
    }
    optimizer_.ApplyOtherRows(iterations, UpdateOf(rows));
  }

  RowUpdate UpdateOf(const TableRows& rows) const {
    return {.count = addresses_.size(),
            .width = static_cast<size_t>(rows.width),
            .gradients = reinterpret_cast<const std::byte*>(rows.gradients),
            .rows = addresses_.data()};
  }

  const Optimizer& optimizer_;
  const job::Optimizer limits_;
  std::vector<float*> addresses_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TableUpdate>> NewTableUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits) {
  return std::make_unique<CpuTableUpdate>(optimizer, limits);
}

}  // namespace parasol::cpu
