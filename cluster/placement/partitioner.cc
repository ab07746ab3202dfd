#include "cluster/placement/partitioner.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace parasol {
namespace {

constexpr int64_t kBytesPerElement = 4;

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t MinSizeParts(const job::MinSizePartitioner& partitioner, int64_t bytes,
                     int num_ps) {
  const int64_t max_parts =
      partitioner.max_shards() == 0 ? num_ps : partitioner.max_shards();
  return std::min(
      max_parts,
      CeilDivide(bytes, std::max<int64_t>(1, partitioner.min_shard_bytes())));
}

int64_t MaxSizeParts(const job::MaxSizePartitioner& partitioner, int64_t rows,
                     int64_t row_bytes) {
  const int64_t rows_of_part =
      std::max<int64_t>(1, partitioner.max_shard_bytes() / row_bytes);
  const int64_t parts = CeilDivide(rows, rows_of_part);
  return partitioner.max_shards() == 0
             ? parts
             : std::min(parts, partitioner.max_shards());
}

}  // namespace

int64_t NumParts(const job::ParameterServerStrategy& strategy,
                 absl::Span<const int64_t> shape, int num_ps) {
  if (shape.empty()) return 1;
  const int64_t rows = shape[0];
  const int64_t row_bytes = std::accumulate(
      shape.begin() + 1, shape.end(), kBytesPerElement, std::multiplies<>());
  int64_t parts = 1;
  switch (strategy.partitioner_case()) {
    case job::ParameterServerStrategy::kFixedShards:
      parts = strategy.fixed_shards().shards();
      break;
    case job::ParameterServerStrategy::kMinSize:
      parts = MinSizeParts(strategy.min_size(), rows * row_bytes, num_ps);
      break;
    case job::ParameterServerStrategy::kMaxSize:
      parts = MaxSizeParts(strategy.max_size(), rows, row_bytes);
      break;
    case job::ParameterServerStrategy::PARTITIONER_NOT_SET:
      break;
  }
  return std::clamp<int64_t>(parts, 1, rows);
}

std::vector<int64_t> SplitRows(int64_t rows, int64_t parts) {
  std::vector<int64_t> split(parts, rows / parts);
  for (int64_t i = 0; i < rows % parts; ++i) ++split[i];
  return split;
}

}  // namespace parasol
