#ifndef PARASOL_ML_DEVICE_DISPATCH_H_
#define PARASOL_ML_DEVICE_DISPATCH_H_

#include "ml/device/device.h"

// The value of `call` in namespace cuda or cpu, as the device asks. Without
// CUDA in the build no device asks for it, and nothing refers to it.
#if PARASOL_HAVE_CUDA
#define PARASOL_DISPATCH(device, call) \
  ((device).kind() == Device::Kind::kCuda ? cuda::call : cpu::call)
#else
#define PARASOL_DISPATCH(device, call) (cpu::call)
#endif

#endif  // PARASOL_ML_DEVICE_DISPATCH_H_
