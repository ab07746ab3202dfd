#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/loss/categorical_cross_entropy.h"
#include "ml/kernel/loss/row_kernel.h"

namespace parasol::cuda {
namespace {

// An example's labels before they are smoothed.
struct DenseLabels {
  static constexpr bool kIsSparse = false;
  __device__ DenseLabels(const float* labels, int64_t row, int64_t columns)
      : labels(labels + row * columns) {}
  __device__ float operator()(int64_t i) const { return labels[i]; }
  const float* labels;
};

struct SparseLabels {
  static constexpr bool kIsSparse = true;
  __device__ SparseLabels(const float* labels, int64_t row, int64_t columns)
      : label(static_cast<int64_t>(labels[row])) {}
  __device__ float operator()(int64_t i) const { return i == label ? 1 : 0; }
  int64_t label;
};

// fmaxf() passes NaN over, which the sum of exponentials then does not.
__device__ float RowMax(const float* z, int64_t columns) {
  float largest = -INFINITY;
  for (int64_t i = threadIdx.x; i < columns; i += kWarpSize) {
    largest = fmaxf(largest, z[i]);
  }
  return WarpMax(largest);
}

template <typename Labels>
__global__ void CategoricalKernel(LossBatch batch, float smoothing,
                                  LossResult out) {
  const int64_t row = ThisRow();
  if (row >= batch.outputs.rows) return;
  const int64_t columns = batch.outputs.columns;
  const float* const z = batch.outputs.data + row * columns;
  const Labels label(batch.labels, row, columns);
  const auto y = [=](int64_t i) {
    return label(i) * (1 - smoothing) + smoothing / columns;
  };
  const float largest = RowMax(z, columns);
  float exp_sum = 0;
  float label_sum = 0;
  float product = 0;  // product of labels and logits
  for (int64_t i = threadIdx.x; i < columns; i += kWarpSize) {
    exp_sum += expf(z[i] - largest);
    const float share = y(i);
    label_sum += share;
    // Nothing of a sparse label: 0 · -∞ would be NaN.
    if (Labels::kIsSparse && share == 0) continue;
    product += share * (z[i] - largest);
  }
  exp_sum = WarpSum(exp_sum);
  label_sum = WarpSum(label_sum);
  product = WarpSum(product);
  const float weight = WeightOf(batch, row);
  if (threadIdx.x == 0) {
    out.losses[row] = weight * (label_sum * logf(exp_sum) - product);
  }
  if (out.gradient == nullptr) return;
  const float scale = weight / batch.outputs.rows;
  const float probability = scale * label_sum / exp_sum;
  for (int64_t i = threadIdx.x; i < columns; i += kWarpSize) {
    out.gradient[row * columns + i] =
        expf(z[i] - largest) * probability - scale * y(i);
  }
}

template <typename Labels>
absl::Status CrossEntropy(Device& device, const LossBatch& batch,
                          float smoothing, const LossResult& out) {
  if (batch.outputs.rows == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  Launch(CategoricalKernel<Labels>, RowBlocks(batch.outputs.rows), RowThreads(),
         stream, batch, smoothing, out);
  return LaunchStatus("categorical cross-entropy");
}

}  // namespace

absl::Status CategoricalCrossEntropy(Device& device, const LossBatch& batch,
                                     float smoothing, const LossResult& out) {
  return CrossEntropy<DenseLabels>(device, batch, smoothing, out);
}

absl::Status SparseCategoricalCrossEntropy(Device& device,
                                           const LossBatch& batch,
                                           float smoothing,
                                           const LossResult& out) {
  return CrossEntropy<SparseLabels>(device, batch, smoothing, out);
}

}  // namespace parasol::cuda
