#include <algorithm>
#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/l2.h"

namespace parasol::cuda {
namespace {

constexpr int kSumThreads = 1024;
constexpr int kThreads = 256;
// Most blocks of a term: enough for a device that has nothing else to do.
constexpr int64_t kMaxBlocks = 512;

// Terms of one launch. They travel as a kernel's argument, of which CUDA takes
// 4 KB.
constexpr size_t kMaxTerms = 100;
struct Terms {
  L2Term term[kMaxTerms];
};
static_assert(sizeof(Terms) <= 4000);

// A term's elements, also where those are of rows.
struct TermElements {
  __device__ explicit TermElements(const L2Term& term)
      : rows(term.rows),
        w(term.w),
        gradient(rows == nullptr ? term.gradient : rows->gradients),
        size(rows == nullptr ? term.size : rows->elements) {}

  __device__ float operator[](int64_t i) const {
    return rows == nullptr ? w[i] : rows->value(i);
  }

  const TableRows* rows;
  const float* w;
  float* gradient;
  int64_t size;
};

// A block for each term, so that the order of the sum, and its bits, are always
// the same. Regularized variables are small beside what a step reads of them.
__global__ void L2LossesKernel(Terms terms, float* losses) {
  __shared__ double partial[kSumThreads];
  const L2Term& term = terms.term[blockIdx.x];
  const TermElements elements(term);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < elements.size; i += kSumThreads) {
    const double w = elements[i];
    sum += w * w;
  }
  partial[threadIdx.x] = sum;
  for (unsigned half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) losses[blockIdx.x] = term.l2 * partial[0];
}

__global__ void AddL2GradientsKernel(Terms terms) {
  const L2Term& term = terms.term[blockIdx.y];
  const TermElements elements(term);
  const float scale = 2 * term.l2;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       i < elements.size; i += step) {
    elements.gradient[i] += scale * elements[i];
  }
}

// Calls launch(terms, count, first) for all terms, as many at once as a kernel
// takes.
template <typename Function>
absl::Status ForEachLaunch(absl::Span<const L2Term> terms,
                           const Function& launch) {
  for (size_t first = 0; first < terms.size(); first += kMaxTerms) {
    const absl::Span<const L2Term> some = terms.subspan(first, kMaxTerms);
    Terms argument;
    std::copy(some.begin(), some.end(), argument.term);
    launch(argument, some.size(), first);
    RETURN_IF_ERROR(LaunchStatus("L2 terms"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return ForEachLaunch(terms, [&](const Terms& some, size_t count,
                                  size_t first) {
    Launch(L2LossesKernel, count, kSumThreads, stream, some, losses + first);
  });
}

absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return ForEachLaunch(terms, [&](const Terms& some, size_t count, size_t) {
    int64_t largest = 1;
    for (size_t i = 0; i < count; ++i) {
      largest = std::max(largest, some.term[i].size);
    }
    const int64_t blocks =
        std::min((largest + kThreads - 1) / kThreads, kMaxBlocks);
    Launch(AddL2GradientsKernel, dim3(blocks, count), kThreads, stream, some);
  });
}

}  // namespace parasol::cuda
