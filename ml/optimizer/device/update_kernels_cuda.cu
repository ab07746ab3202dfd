#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/lane_sum_cuda.h"
#include "ml/optimizer/device/update_kernels.h"
#include "ml/optimizer/rule/clip.h"

namespace parasol::cuda {
namespace {

constexpr int kThreads = kSumLanes;

// The elements of one variable's gradient, clipped.
class ClippedGradient {
 public:
  __device__ ClippedGradient(const UpdateTables& tables, int64_t variable,
                             const GradientClip& clip)
      : gradient_(tables.variables[variable].gradient),
        limit_(clip.value_limit),
        by_norm_(clip.sums != nullptr),
        by_global_norm_(clip.global_sum != nullptr) {
    if (by_norm_) factor_ = NormFactor(clip.norm_limit, clip.sums[variable]);
    if (by_global_norm_) {
      global_factor_ = GlobalNormFactor(clip.global_limit, *clip.global_sum);
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

__device__ int64_t EndOf(const UpdateTables& tables, const UpdateChunk& chunk) {
  return min(chunk.begin + kSumChunk, tables.variables[chunk.variable].count);
}

__global__ void ChunkSumsKernel(UpdateTables tables, GradientClip clip,
                                double* chunk_sums) {
  __shared__ double lanes[kSumLanes];
  const UpdateChunk chunk = tables.chunks[blockIdx.x];
  const ClippedGradient gradient(tables, chunk.variable, clip);
  const double sum = SumInLanes(lanes, chunk.begin, EndOf(tables, chunk),
                                [&](int64_t i) { return Square(gradient[i]); });
  if (threadIdx.x == 0) chunk_sums[blockIdx.x] = sum;
}

__global__ void VariableSumsKernel(UpdateTables tables,
                                   const double* chunk_sums, double* sums) {
  __shared__ double lanes[kSumLanes];
  const UpdateArrays& variable = tables.variables[blockIdx.x];
  const double sum = SumInLanes(
      lanes, variable.first_chunk, variable.first_chunk + variable.num_chunks,
      [&](int64_t chunk) { return chunk_sums[chunk]; });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void TotalKernel(const double* sums, int64_t count, double* total) {
  __shared__ double lanes[kSumLanes];
  const double sum =
      SumInLanes(lanes, 0, count, [&](int64_t i) { return sums[i]; });
  if (threadIdx.x == 0) *total = sum;
}

template <typename Rule, size_t... I>
__device__ void UpdateElement(const Rule& rule, float gradient,
                              const UpdateArrays& arrays, int64_t i,
                              std::index_sequence<I...>) {
  float slots[kMaxSlots] = {arrays.slots[I][i]...};
  arrays.value[i] = rule(gradient, arrays.value[i], slots[I]...);
  ((arrays.slots[I][i] = slots[I]), ...);
}

template <typename Rule>
__global__ void UpdateKernel(Rule rule, UpdateTables tables,
                             int64_t first_chunk, GradientClip clip) {
  const UpdateChunk chunk = tables.chunks[first_chunk + blockIdx.x];
  const UpdateArrays arrays = tables.variables[chunk.variable];
  const ClippedGradient gradient(tables, chunk.variable, clip);
  const int64_t end = EndOf(tables, chunk);
  for (int64_t i = chunk.begin + threadIdx.x; i < end; i += kThreads) {
    UpdateElement(rule, gradient[i], arrays, i,
                  std::make_index_sequence<Rule::kSlots>());
  }
}

// Both sums are taken in the order in which the threads have the elements.
__global__ void LambSlotsKernel(LambRule rule, UpdateTables tables,
                                int64_t first_chunk, GradientClip clip,
                                LambSums sums) {
  __shared__ double lanes[kSumLanes];
  __shared__ double other_lanes[kSumLanes];
  const int64_t index = first_chunk + blockIdx.x;
  const UpdateChunk chunk = tables.chunks[index];
  const UpdateArrays arrays = tables.variables[chunk.variable];
  const ClippedGradient gradient(tables, chunk.variable, clip);
  const int64_t end = EndOf(tables, chunk);
  const double directions = SumInLanes(lanes, chunk.begin, end, [&](int64_t i) {
    float m = arrays.slots[0][i];
    float v = arrays.slots[1][i];
    rule.Remember(gradient[i], m, v);
    arrays.slots[0][i] = m;
    arrays.slots[1][i] = v;
    return Square(rule.Direction(arrays.value[i], m, v));
  });
  const double values =
      SumInLanes(other_lanes, chunk.begin, end,
                 [&](int64_t i) { return Square(arrays.value[i]); });
  if (threadIdx.x != 0) return;
  sums.directions_of_chunks[index] = directions;
  sums.values_of_chunks[index] = values;
}

__global__ void LambStepKernel(LambRule rule, UpdateTables tables,
                               int64_t first_chunk, LambSums sums) {
  const UpdateChunk chunk = tables.chunks[first_chunk + blockIdx.x];
  const UpdateArrays arrays = tables.variables[chunk.variable];
  const float factor =
      rule.Factor(sums.values[chunk.variable], sums.directions[chunk.variable]);
  const int64_t end = EndOf(tables, chunk);
  for (int64_t i = chunk.begin + threadIdx.x; i < end; i += kThreads) {
    arrays.value[i] = rule.Step(factor, arrays.value[i], arrays.slots[0][i],
                                arrays.slots[1][i]);
  }
}

absl::StatusOr<CUstream_st*> StreamOf(Device& device) {
  return static_cast<CudaDevice&>(device).ComputeStream();
}

}  // namespace

absl::Status LaunchUpdate(Device& device, const UpdateRule& rule,
                          const UpdateTables& tables, int64_t first_chunk,
                          int64_t num_chunks, const GradientClip& clip) {
  if (num_chunks == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  std::visit(
      [&]<typename Rule>(const Rule& chosen) {
        Launch(UpdateKernel<Rule>, num_chunks, kThreads, stream, chosen, tables,
               first_chunk, clip);
      },
      rule);
  return LaunchStatus("update");
}

absl::Status LaunchLambSlots(Device& device, const LambRule& rule,
                             const UpdateTables& tables, int64_t first_chunk,
                             int64_t num_chunks, const GradientClip& clip,
                             const LambSums& sums) {
  if (num_chunks == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  Launch(LambSlotsKernel, num_chunks, kThreads, stream, rule, tables,
         first_chunk, clip, sums);
  return LaunchStatus("update of LAMB's slots");
}

absl::Status LaunchLambSums(Device& device, const UpdateTables& tables,
                            const LambSums& sums) {
  if (tables.num_variables == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  Launch(VariableSumsKernel, tables.num_variables, kThreads, stream, tables,
         sums.values_of_chunks, sums.values);
  RETURN_IF_ERROR(LaunchStatus("sums of squares of values"));
  Launch(VariableSumsKernel, tables.num_variables, kThreads, stream, tables,
         sums.directions_of_chunks, sums.directions);
  return LaunchStatus("sums of squares of directions");
}

absl::Status LaunchLambStep(Device& device, const LambRule& rule,
                            const UpdateTables& tables, int64_t first_chunk,
                            int64_t num_chunks, const LambSums& sums) {
  if (num_chunks == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  Launch(LambStepKernel, num_chunks, kThreads, stream, rule, tables,
         first_chunk, sums);
  return LaunchStatus("update by LAMB");
}

absl::Status LaunchSums(Device& device, const UpdateTables& tables,
                        const GradientClip& clip, double* chunk_sums,
                        double* sums) {
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  if (tables.num_chunks > 0) {
    Launch(ChunkSumsKernel, tables.num_chunks, kThreads, stream, tables, clip,
           chunk_sums);
    RETURN_IF_ERROR(LaunchStatus("sums of squares of chunks"));
  }
  if (tables.num_variables == 0) return absl::OkStatus();
  Launch(VariableSumsKernel, tables.num_variables, kThreads, stream, tables,
         chunk_sums, sums);
  return LaunchStatus("sums of squares");
}

absl::Status LaunchTotal(Device& device, const double* sums, int64_t count,
                         double* total) {
  ASSIGN_OR_RETURN(CUstream_st * stream, StreamOf(device));
  Launch(TotalKernel, 1, kThreads, stream, sums, count, total);
  return LaunchStatus("sum of all squares");
}

}  // namespace parasol::cuda
