#ifndef PARASOL_ML_DEVICE_DISPATCH_H_
#define PARASOL_ML_DEVICE_DISPATCH_H_

#include "ml/device/device.h"

// The value of `call` in namespace cuda if the device is a CUDA device,
// otherwise in namespace cpu. A build without CUDA has no CUDA devices, and
// nothing in it refers to namespace cuda.
#ifndef PARASOL_HAVE_CUDA
#error "The target needs CUDA_COPTS, which kernel() of kernel.bzl adds."
#elif PARASOL_HAVE_CUDA
#define PARASOL_DISPATCH(device, call) \
  ((device).kind() == Device::Kind::kCuda ? cuda::call : cpu::call)
#else
#define PARASOL_DISPATCH(device, call) (cpu::call)
#endif

#endif  // PARASOL_ML_DEVICE_DISPATCH_H_
