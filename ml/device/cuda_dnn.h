#ifndef PARASOL_ML_DEVICE_CUDA_DNN_H_
#define PARASOL_ML_DEVICE_CUDA_DNN_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/precision.h"

struct CUstream_st;

namespace parasol {

// Images [examples, height, width, channels], padded alike on both sides.
struct DnnConvolutionShape {
  struct Axis {
    int64_t input = 0, window = 0, stride = 1, padding = 0, output = 0;
    friend auto operator<=>(const Axis&, const Axis&) = default;
  };
  int64_t examples = 0;
  Axis height, width;
  int64_t channels = 0, filters = 0;

  friend auto operator<=>(const DnnConvolutionShape&,
                          const DnnConvolutionShape&) = default;
};

// One convolution. Kernels are [height, width, channels, filters], as
// everywhere; cuDNN wants the filters first, so each call turns them over.
// Everything is enqueued on the stream of the CudaDnn that made it, which it
// must not outlive. Unavailable: the device was lost.
class DnnConvolution {
 public:
  virtual ~DnnConvolution() = default;

  virtual absl::Status Forward(const float* x, const float* kernel,
                               float* y) = 0;
  virtual absl::Status KernelGradient(const float* x, const float* dy,
                                      float* dkernel) = 0;
  virtual absl::Status InputGradient(const float* dy, const float* kernel,
                                     float* dx) = 0;
};

// cuDNN, opened when it is first needed, as CudaBlas is.
class CudaDnn {
 public:
  // For the calling thread's device; all work goes to `stream`. `releases`, of
  // the device, must outlive it.
  //   FailedPrecondition  the library is not on this machine, or its headers
  //                       were not where this was built.
  static absl::StatusOr<std::unique_ptr<CudaDnn>> Open(CUstream_st* stream,
                                                       Precision precision,
                                                       uint64_t& releases);
  virtual ~CudaDnn() = default;

  // The first of a shape tries cuDNN's algorithms and keeps the fastest one of
  // each pass that gives the same bits every time.
  //   Unimplemented      there is none.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::unique_ptr<DnnConvolution>> NewConvolution(
      const DnnConvolutionShape& shape) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DNN_H_
