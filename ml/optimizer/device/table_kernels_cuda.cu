#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/lane_sum_cuda.h"
#include "ml/optimizer/device/table_kernels.h"
#include "ml/optimizer/rule/clip.h"
#include "ml/optimizer/rule/rowwise_adagrad.h"
#include "ml/optimizer/rule/sgd.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = kSumLanes;
// Most blocks of a table; a thread then has several elements.
constexpr int64_t kMaxBlocks = 2048;

// Tables travel as a kernel's argument. A block's y is its table's index.
struct Tables {
  UpdatedTable table[kMaxUpdatedTables];
};
static_assert(sizeof(Tables) <= 3600);

// The elements of one table's gradient, clipped.
class ClippedRows {
 public:
  __device__ ClippedRows(const UpdatedTable& table, unsigned index,
                         const TableClip& clip)
      : gradient_(table.rows->gradients),
        limit_(clip.value_limit),
        by_norm_(clip.sums != nullptr),
        by_global_norm_(clip.clipped_sums != nullptr) {
    if (by_norm_) factor_ = NormFactor(clip.norm_limit, clip.sums[index]);
    if (by_global_norm_) {
      global_factor_ =
          GlobalNormFactor(clip.global_limit, clip.clipped_sums[index]);
    }
  }

  __device__ float operator[](int64_t i) const {
    float element = Clamp(limit_, gradient_[i]);
    if (by_norm_) element = Scale(factor_, element);
    if (by_global_norm_) element = Scale(global_factor_, element);
    return element;
  }

 private:
  const float* gradient_;
  float limit_;
  bool by_norm_;
  bool by_global_norm_;
  double factor_ = 1;
  double global_factor_ = 1;
};

// Changes element `column` of a row by `rule`; only its slots without `values`.
template <typename Rule, size_t... I>
__device__ void UpdateElement(const Rule& rule, float gradient, float* row,
                              int32_t width, int32_t column, bool values,
                              std::index_sequence<I...>) {
  // One more, lest a rule without slots has an array of none.
  float slots[sizeof...(I) + 1] = {row[(1 + I) * width + column]...};
  const float value = rule(gradient, row[column], slots[I]...);
  if (values) row[column] = value;
  ((row[(1 + I) * width + column] = slots[I]), ...);
}

// The rows of gradients, each of which is there once.
template <typename Rule>
__global__ void RowUpdateKernel(Rule rule, Tables tables, TableClip clip,
                                int32_t mark) {
  const UpdatedTable table = tables.table[blockIdx.y];
  const TableRows rows = *table.rows;
  const ClippedRows gradient(table, blockIdx.y, clip);
  const auto width = static_cast<uint32_t>(rows.width);
  const auto elements = static_cast<uint32_t>(table.elements);
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < elements;
       i += step) {
    const int32_t number = rows.numbers[i / width];
    const uint32_t column = i % width;
    UpdateElement(rule, gradient[i], rows.blocks.row(number), width, column,
                  /*values=*/true, std::make_index_sequence<Rule::kSlots>());
    if (mark != 0 && column == 0) *rows.blocks.mark(number) = mark;
  }
}

// Returns the sum of the values of the lanes of a row, on each of them, in the
// order of the rules of rows.
template <int kLanes>
__device__ float SumOfLanes(float value) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    value += __shfl_xor_sync(0xffffffff, value, half);
  }
  return value;
}

// Updates the rows of gradients by a rule of rows, which marks none: kLanes
// threads have a row.
template <typename Rule>
__global__ void WholeRowUpdateKernel(Rule rule, Tables tables, TableClip clip) {
  constexpr int32_t kLanes = Rule::kLanes;
  const UpdatedTable table = tables.table[blockIdx.y];
  const TableRows rows = *table.rows;
  const ClippedRows gradient(table, blockIdx.y, clip);
  const int32_t width = rows.width;
  const int64_t count = table.elements / width;
  const int32_t lane = threadIdx.x % kLanes;
  const int64_t of_block = blockDim.x / kLanes;
  const int64_t step = gridDim.x * of_block;
  // All threads of a warp add up together: some have no row then.
  for (int64_t first = blockIdx.x * of_block; first < count; first += step) {
    const int64_t i = first + threadIdx.x / kLanes;
    float sum = 0;
    for (int32_t column = lane; i < count && column < width; column += kLanes) {
      const float g = gradient[i * width + column];
      sum += g * g;
    }
    sum = SumOfLanes<kLanes>(sum);
    float* const row = i < count ? rows.blocks.row(rows.numbers[i]) : nullptr;
    // One lane changes the slot. The others get its factor as a sum with zeros,
    // which changes no bit.
    const float of_lane =
        i < count && lane == 0
            ? rule.StepOf(sum, width, row[width]).learning_rate
            : 0;
    const SgdRule step_of_row = {SumOfLanes<kLanes>(of_lane)};
    for (int32_t column = lane; i < count && column < width; column += kLanes) {
      row[column] = step_of_row(gradient[i * width + column], row[column]);
    }
  }
}

// All other rows.
template <typename Rule>
__global__ void OtherRowUpdateKernel(Rule rule, Tables tables, bool values,
                                     int32_t mark) {
  const UpdatedTable table = tables.table[blockIdx.y];
  const RowBlocks blocks = table.rows->blocks;
  const int32_t width = table.rows->width;
  const int64_t elements = table.num_rows * width;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += step) {
    const auto number = static_cast<int32_t>(i / width);
    if (*blocks.mark(number) == mark) continue;
    UpdateElement(rule, /*gradient=*/0.0f, blocks.row(number), width,
                  static_cast<int32_t>(i % width), values,
                  std::make_index_sequence<Rule::kSlots>());
  }
}

__global__ void ChunkSumsKernel(Tables tables, TableClip clip,
                                double* chunk_sums) {
  __shared__ double lanes[kSumLanes];
  const UpdatedTable table = tables.table[blockIdx.y];
  const ClippedRows gradient(table, blockIdx.y, clip);
  const int64_t begin = blockIdx.x * kSumChunk;
  const int64_t end = min(begin + kSumChunk, table.elements);
  const double sum = SumInLanes(lanes, begin, end,
                                [&](int64_t i) { return Square(gradient[i]); });
  if (threadIdx.x == 0) {
    chunk_sums[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = sum;
  }
}

// `most` is the number of chunks for which each table has memory.
__global__ void TableSumsKernel(Tables tables, const double* chunk_sums,
                                int64_t most, double* sums) {
  __shared__ double lanes[kSumLanes];
  const int64_t elements = tables.table[blockIdx.y].elements;
  const int64_t chunks = (elements + kSumChunk - 1) / kSumChunk;
  const double sum = SumInLanes(lanes, 0, chunks, [&](int64_t chunk) {
    return chunk_sums[blockIdx.y * most + chunk];
  });
  if (threadIdx.x == 0) sums[blockIdx.y] = sum;
}

Tables ArgumentOf(absl::Span<const UpdatedTable> tables) {
  Tables argument = {};
  std::copy(tables.begin(), tables.end(), argument.table);
  return argument;
}

unsigned BlocksFor(int64_t elements) {
  return std::min((elements + kThreads - 1) / kThreads, kMaxBlocks);
}

absl::StatusOr<CUstream_st*> StreamOf(Device& device) {
  return static_cast<CudaDevice&>(device).ComputeStream();
}

}  // namespace

absl::Status LaunchRowUpdate(Device& device, const UpdateRule& rule,
                             absl::Span<const UpdatedTable> tables,
                             const TableClip& clip, int32_t mark) {
  int64_t most = 0;
  for (const UpdatedTable& table : tables) {
    most = std::max(most, table.elements);
  }
  if (most == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  std::visit(
      [&]<typename Rule>(const Rule& chosen) {
        const dim3 blocks(BlocksFor(most), tables.size());
        if constexpr (kIsRuleOfRows<Rule>) {
          Launch(WholeRowUpdateKernel<Rule>, blocks, kThreads, stream, chosen,
                 ArgumentOf(tables), clip);
        } else {
          Launch(RowUpdateKernel<Rule>, blocks, kThreads, stream, chosen,
                 ArgumentOf(tables), clip, mark);
        }
      },
      rule);
  return LaunchStatus("update of rows");
}

absl::Status LaunchOtherRowUpdate(Device& device, const UpdateRule& rule,
                                  absl::Span<const UpdatedTable> tables,
                                  Optimizer::OtherRows what, int32_t mark) {
  int64_t most = 0;
  for (const UpdatedTable& table : tables) {
    most = std::max(most, table.num_rows);
  }
  if (most == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  const bool values = what == Optimizer::OtherRows::kAll;
  std::visit(
      [&]<typename Rule>(const Rule& chosen) {
        // As many threads for each row as for a narrow one.
        Launch(OtherRowUpdateKernel<Rule>,
               dim3(BlocksFor(most * 16), tables.size()), kThreads, stream,
               chosen, ArgumentOf(tables), values, mark);
      },
      rule);
  return LaunchStatus("update of other rows");
}

int64_t MostChunks(absl::Span<const UpdatedTable> tables) {
  int64_t most = 0;
  for (const UpdatedTable& table : tables) {
    most = std::max(most, (table.elements + kSumChunk - 1) / kSumChunk);
  }
  return most;
}

absl::Status LaunchTableSums(Device& device,
                             absl::Span<const UpdatedTable> tables,
                             const TableClip& clip, double* chunk_sums,
                             double* sums) {
  const int64_t chunks = MostChunks(tables);
  if (chunks == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  Launch(ChunkSumsKernel, dim3(chunks, tables.size()), kThreads, stream,
         ArgumentOf(tables), clip, chunk_sums);
  RETURN_IF_ERROR(LaunchStatus("sums of squares of rows' chunks"));
  Launch(TableSumsKernel, dim3(1, tables.size()), kThreads, stream,
         ArgumentOf(tables), chunk_sums, chunks, sums);
  return LaunchStatus("sums of squares of rows");
}

}  // namespace parasol::cuda
