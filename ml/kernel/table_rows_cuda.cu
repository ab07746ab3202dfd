#include <cstdint>

#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/table_rows.h"

namespace parasol::cuda {
namespace {

__device__ float WeightOf(const Bags& bags, int32_t i) {
  return bags.weights == nullptr ? 1 : bags.weights[i];
}

// Returns the factor of each row of the example's bag beside its weight.
__device__ float ScaleOf(const Bags& bags, Combiner combiner, int64_t example) {
  if (combiner == Combiner::kSum) return 1;
  float sum = 0;
  for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1]; ++i) {
    sum += WeightOf(bags, i);
  }
  return sum == 0 ? 0 : 1 / sum;
}

struct Gather {
  const TableRows* table;
  const int32_t* positions;
  MutableMatrixView y;
  __device__ void operator()(int64_t i) const {
    const int64_t row = positions[i / y.columns];
    y.data[i] = table->values[row * y.columns + i % y.columns];
  }
};

struct Add {
  MatrixView dy;
  const int32_t* positions;
  const TableRows* table;
  __device__ void operator()(int64_t i) const {
    const int64_t row = positions[i / dy.columns];
    atomicAdd(&table->gradients[row * dy.columns + i % dy.columns], dy.data[i]);
  }
};

struct Combine {
  const TableRows* table;
  Bags bags;
  Combiner combiner;
  const float* bias;
  MutableMatrixView y;
  __device__ void operator()(int64_t element) const {
    const int64_t example = element / y.columns;
    const int64_t column = element % y.columns;
    const float* const rows = table->values;
    float sum = 0;
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i) {
      sum += WeightOf(bags, i) * rows[bags.positions[i] * y.columns + column];
    }
    const float start = bias == nullptr ? 0 : bias[column];
    y.data[element] = start + sum * ScaleOf(bags, combiner, example);
  }
};

struct AddCombined {
  MatrixView dy;
  Bags bags;
  Combiner combiner;
  const TableRows* table;
  __device__ void operator()(int64_t element) const {
    const int64_t example = element / dy.columns;
    const int64_t column = element % dy.columns;
    float* const rows = table->gradients;
    const float gradient = dy.data[element] * ScaleOf(bags, combiner, example);
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i) {
      atomicAdd(&rows[bags.positions[i] * dy.columns + column],
                WeightOf(bags, i) * gradient);
    }
  }
};

}  // namespace

absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y) {
  return ForEach(device, "look-up of rows", y.size(),
                 Gather{table, positions, y});
}

absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const TableRows* table) {
  return ForEach(device, "gradient of rows", dy.size(),
                 Add{dy, positions, table});
}

absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y) {
  return ForEach(device, "bags of rows", y.size(),
                 Combine{table, bags, combiner, bias, y});
}

absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table) {
  return ForEach(device, "gradient of bags of rows", dy.size(),
                 AddCombined{dy, bags, combiner, table});
}

absl::Status SumColumns(Device& device, MatrixView dy, float* sum) {
  return SumRowsOf(device, "gradient of a bias of bags", dy, sum);
}

}  // namespace parasol::cuda
