#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
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
  const int32_t begin = bags.offsets[example];
  const int32_t end = bags.offsets[example + 1];
  float sum = 0;
  if (bags.weights == nullptr) {
    sum = static_cast<float>(end - begin);
  } else {
    for (int32_t i = begin; i < end; ++i) sum += bags.weights[i];
  }
  return sum == 0 ? 0 : 1 / sum;
}

// Returns `sum` plus term(i) for `i` from `begin`, one after the other. Terms
// are read ahead of the additions, which wait for each other.
template <typename Term>
__device__ float AddInOrder(float sum, int32_t begin, int32_t end,
                            const Term& term) {
  constexpr int kAhead = 16;
  int32_t i = begin;
  for (; i + kAhead <= end; i += kAhead) {
    float terms[kAhead];
    for (int j = 0; j < kAhead; ++j) terms[j] = term(i + j);
    for (int j = 0; j < kAhead; ++j) sum += terms[j];
  }
  for (; i < end; ++i) sum += term(i);
  return sum;
}

struct Gather {
  const TableRows* table;
  const int32_t* positions;
  MutableMatrixView y;
  __device__ void operator()(int64_t i) const {
    y.data[i] = table->row(positions[i / y.columns])[i % y.columns];
  }
};

// The gradient of one element of a row, from all places at which it is looked
// up. Adds to `table`, because other inputs may look the row up too.
struct Add {
  MatrixView dy;
  RowPlaces by_row;
  const TableRows* table;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / dy.columns;
    const int64_t column = i % dy.columns;
    float& gradient = table->gradients[by_row.rows[row] * dy.columns + column];
    gradient =
        AddInOrder(gradient, by_row.starts[row], by_row.starts[row + 1],
                   [&](int32_t place) {
                     return dy.data[by_row.places[place] * dy.columns + column];
                   });
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
    float sum = 0;
    for (int32_t i = bags.offsets[example]; i < bags.offsets[example + 1];
         ++i) {
      sum += WeightOf(bags, i) * table->row(bags.positions[i])[column];
    }
    const float start = bias == nullptr ? 0 : bias[column];
    y.data[element] = start + sum * ScaleOf(bags, combiner, example);
  }
};

struct WriteScales {
  Bags bags;
  Combiner combiner;
  float* scales;
  __device__ void operator()(int64_t example) const {
    scales[example] = ScaleOf(bags, combiner, example);
  }
};

// Adds as Add does, with the factors of bags.
struct AddCombined {
  MatrixView dy;
  Bags bags;
  Combiner combiner;
  const float* scales;  // of each example; null: ScaleOf()
  const TableRows* table;
  __device__ float FactorOf(int32_t place, int64_t example) const {
    const float scale =
        scales == nullptr ? ScaleOf(bags, combiner, example) : scales[example];
    return scale * WeightOf(bags, place);
  }
  __device__ void operator()(int64_t i) const {
    const RowPlaces& by_row = bags.by_row;
    const int64_t row = i / dy.columns;
    const int64_t column = i % dy.columns;
    float& gradient = table->gradients[by_row.rows[row] * dy.columns + column];
    gradient = AddInOrder(
        gradient, by_row.starts[row], by_row.starts[row + 1], [&](int32_t j) {
          const int32_t place = by_row.places[j];
          const int64_t example =
              by_row.examples == nullptr ? place : by_row.examples[j];
          return FactorOf(place, example) *
                 dy.data[example * dy.columns + column];
        });
  }
};

struct GatherSteps {
  const TableRows* table;
  Bags bags;
  int64_t length;
  MutableMatrixView y;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / y.columns;
    const int64_t example = row / length;
    const int64_t place = bags.offsets[example] + row % length;
    const bool is_empty = place >= bags.offsets[example + 1];
    y.data[i] =
        is_empty ? 0.0f : table->row(bags.positions[place])[i % y.columns];
  }
};

// Adds as Add does. The place of a step's id is not its row of dy.
struct AddSteps {
  MatrixView dy;
  Bags bags;
  int64_t length;
  const TableRows* table;
  __device__ void operator()(int64_t i) const {
    const RowPlaces& by_row = bags.by_row;
    const int64_t row = i / dy.columns;
    const int64_t column = i % dy.columns;
    float& gradient = table->gradients[by_row.rows[row] * dy.columns + column];
    gradient = AddInOrder(
        gradient, by_row.starts[row], by_row.starts[row + 1], [&](int32_t j) {
          const int64_t example = by_row.examples[j];
          const int64_t step = by_row.places[j] - bags.offsets[example];
          return dy.data[(example * length + step) * dy.columns + column];
        });
  }
};

struct MaskSteps {
  const int32_t* offsets;
  int64_t length;
  float* mask;
  __device__ void operator()(int64_t i) const {
    const int64_t example = i / length;
    const int64_t steps = offsets[example + 1] - offsets[example];
    mask[i] = i % length < steps ? 1.0f : 0.0f;
  }
};

// Calls function(i) for each element `i` of an input's rows. Their number is
// read when the kernel runs: a recorded one has another number each time, and
// its grid is no bound.
template <typename Function>
__global__ void ForEachElementKernel(const int32_t* num_rows, int64_t columns,
                                     Function function) {
  const int64_t size = *num_rows * columns;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size;
       i += step) {
    function(i);
  }
}

template <typename Function>
absl::Status ForEachElement(Device& device, absl::string_view name,
                            const RowPlaces& by_row, int64_t columns,
                            const Function& function) {
  constexpr int kThreads = 256;
  constexpr int64_t kMaxBlocks = 4096;
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  const int64_t most = by_row.capacity * columns;
  const int64_t blocks =
      std::clamp((most + kThreads - 1) / kThreads, int64_t{1}, kMaxBlocks);
  Launch(ForEachElementKernel<Function>, blocks, kThreads, stream,
         by_row.num_rows, columns, function);
  return LaunchStatus(name);
}

}  // namespace

absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y) {
  return ForEach(device, "look-up of rows", y.size(),
                 Gather{table, positions, y});
}

absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table) {
  return ForEachElement(device, "gradient of rows", by_row, dy.columns,
                        Add{dy, by_row, table});
}

absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y) {
  return ForEach(device, "bags of rows", y.size(),
                 Combine{table, bags, combiner, bias, y});
}

absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table) {
  float* scales = nullptr;
  if (combiner == Combiner::kMean && bags.weights != nullptr) {
    // Not for each place anew: that would be the square of a bag's size.
    ASSIGN_OR_RETURN(scales,
                     static_cast<CudaDevice&>(device).Scratch(bags.examples));
    RETURN_IF_ERROR(ForEach(device, "weights of bags", bags.examples,
                            WriteScales{bags, combiner, scales}));
  }
  return ForEachElement(device, "gradient of bags of rows", bags.by_row,
                        dy.columns,
                        AddCombined{dy, bags, combiner, scales, table});
}

absl::Status SumColumns(Device& device, MatrixView dy, float* sum) {
  return SumRowsOf(device, "gradient of a bias of bags", dy.data, dy.rows,
                   dy.columns, sum);
}

absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y) {
  return ForEach(device, "look-up of sequences", y.size(),
                 GatherSteps{table, bags, length, y});
}

absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table) {
  return ForEachElement(device, "gradient of sequences", bags.by_row,
                        dy.columns, AddSteps{dy, bags, length, table});
}

absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask) {
  return ForEach(device, "mask of sequences", bags.examples * length,
                 MaskSteps{bags.offsets, length, mask});
}

}  // namespace parasol::cuda
