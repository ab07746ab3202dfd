#ifndef PARASOL_ML_DEVICE_CUDA_DNN_H_
#define PARASOL_ML_DEVICE_CUDA_DNN_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/elements.h"
#include "ml/device/precision.h"

struct CUstream_st;

namespace parasol {

// The shape of a convolution of images [examples, height, width, channels].
struct DnnConvolutionShape {
  struct Axis {
    int64_t input = 0, window = 0, stride = 1, output = 0;
    int64_t before = 0, after = 0;  // pixels of padding
    friend auto operator<=>(const Axis&, const Axis&) = default;
  };
  int64_t examples = 0;
  Axis height, width;
  int64_t channels = 0, filters = 0;

  friend auto operator<=>(const DnnConvolutionShape&,
                          const DnnConvolutionShape&) = default;
};

// One convolution. Kernels are [height, width, channels, filters], as
// everywhere; cuDNN wants the filters first, so each call transposes them. In
// bfloat16 cuDNN reads and writes arrays of bfloat16, as in mixed precision of
// Keras and PyTorch: images of that type as they are, and others through a
// rounded copy. In other precisions images are float32. Arrays are aligned to
// kAlignment bytes. All work is enqueued on the stream of the CudaDnn that made
// the convolution, which it must not outlive. Errors: Unavailable, the device
// was lost; ResourceExhausted, it has no room for a rounded copy.
class DnnConvolution {
 public:
  static constexpr int64_t kAlignment = 16;

  virtual ~DnnConvolution() = default;

  virtual absl::Status Forward(ConstElements x, const float* kernel,
                               Elements y) = 0;
  virtual absl::Status KernelGradient(ConstElements x, ConstElements dy,
                                      float* dkernel) = 0;
  // Requires `dy` to have the elements that it had in the call before, if that
  // was KernelGradient() with the same `dy`.
  virtual absl::Status InputGradient(ConstElements dy, const float* kernel,
                                     Elements dx) = 0;
};

// cuDNN, opened when it is first needed, for the reasons given at CudaBlas.
class CudaDnn {
 public:
  // Opens cuDNN for the calling thread's device; all work goes to `stream`.
  // `releases` is the device's counter of releases (Device::releases()) and
  // must outlive the result.
  //   FailedPrecondition  the library is not on this machine, or its headers
  //                       were missing where this binary was built.
  static absl::StatusOr<std::unique_ptr<CudaDnn>> Open(CUstream_st* stream,
                                                       Precision precision,
                                                       uint64_t& releases);
  virtual ~CudaDnn() = default;

  // Returns a convolution of `shape`. For each pass it takes the first plan of
  // cuDNN's heuristics that gives the same bits every time and adds up in
  // float32. Plans are not measured against each other, so that the same device
  // and version of cuDNN give the same bits in every process. Equal shapes
  // share their plans.
  //   Unimplemented      there is no such plan.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::unique_ptr<DnnConvolution>> NewConvolution(
      const DnnConvolutionShape& shape) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DNN_H_
