#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/status_macros.h"
#include "ml/optimizer/device/table_kernels.h"
#include "ml/optimizer/device/table_update.h"

namespace parasol::cuda {
namespace {

class CudaTableUpdate final : public TableUpdate {
 public:
  CudaTableUpdate(Device& device, const Optimizer& optimizer,
                  const job::Optimizer& limits)
      : device_(device), optimizer_(optimizer), limits_(limits) {}

  // Makes the sums in the device's memory.
  absl::Status Start() {
    ASSIGN_OR_RETURN(sums_, device_.NewArray<double>(kMaxUpdatedTables));
    ASSIGN_OR_RETURN(clipped_sums_,
                     device_.NewArray<double>(kMaxUpdatedTables));
    return absl::OkStatus();
  }

  absl::Status Apply(int64_t iterations,
                     absl::Span<const Table> tables) override {
    for (size_t first = 0; first < tables.size(); first += kMaxUpdatedTables) {
      RETURN_IF_ERROR(
          ApplySome(iterations, tables.subspan(first, kMaxUpdatedTables)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ApplySome(int64_t iterations, absl::Span<const Table> tables) {
    tables_.clear();
    for (const Table& table : tables) {
      tables_.push_back({.rows = table.rows,
                         .elements = table.elements,
                         .num_rows = table.num_rows});
    }
    const Optimizer::OtherRows other = optimizer_.other_rows();
    const bool touches_others = other != Optimizer::OtherRows::kUntouched;
    const int32_t mark = touches_others ? MarkOfUpdate(iterations) : 0;
    const UpdateRule rule = optimizer_.RuleAt(iterations);
    ASSIGN_OR_RETURN(const TableClip clip, Clip());
    RETURN_IF_ERROR(LaunchRowUpdate(device_, rule, tables_, clip, mark));
    if (!touches_others) return absl::OkStatus();
    return LaunchOtherRowUpdate(device_, rule, tables_, other, mark);
  }

  // Enqueues the sums that the limits need. Each limit applies to what those
  // before it leave.
  absl::StatusOr<TableClip> Clip() {
    TableClip clip;
    if (limits_.has_clipvalue()) {
      clip.value_limit = static_cast<float>(limits_.clipvalue());
    }
    if (limits_.has_clipnorm()) {
      RETURN_IF_ERROR(Sum(clip, sums_.data()));
      clip.norm_limit = limits_.clipnorm();
      clip.sums = sums_.data();
    }
    if (limits_.has_global_clipnorm()) {
      RETURN_IF_ERROR(Sum(clip, clipped_sums_.data()));
      clip.global_limit = limits_.global_clipnorm();
      clip.clipped_sums = clipped_sums_.data();
    }
    return clip;
  }

  absl::Status Sum(const TableClip& clip, double* sums) {
    const size_t chunks = MostChunks(tables_) * tables_.size();
    if (chunks > chunk_sums_.size()) {
      // By half at least, so that it soon grows no more.
      ASSIGN_OR_RETURN(chunk_sums_, device_.NewArray<double>(std::max(
                                        chunks, chunk_sums_.size() * 3 / 2)));
    }
    return LaunchTableSums(device_, tables_, clip, chunk_sums_.data(), sums);
  }

  Device& device_;
  const Optimizer& optimizer_;
  const job::Optimizer limits_;
  std::vector<UpdatedTable> tables_;  // of one call
  // Sums of squares: of each chunk, of each table's gradient before it is
  // clipped by its norm, and after.
  Array<double> chunk_sums_, sums_, clipped_sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TableUpdate>> NewTableUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits) {
  auto update = std::make_unique<CudaTableUpdate>(device, optimizer, limits);
  RETURN_IF_ERROR(update->Start());
  return update;
}

}  // namespace parasol::cuda
