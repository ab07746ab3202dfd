#ifndef PARASOL_ML_DEVICE_CUDA_STATUS_H_
#define PARASOL_ML_DEVICE_CUDA_STATUS_H_

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// What CUDA answered to `what`: out of memory is ResourceExhausted, everything
// else means that the device can no longer be used: Unavailable. Only for .cu
// files.
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Otherwise the next launch would report this error as its own.
  cudaGetLastError();
  const std::string words = absl::StrCat(what, ": ", cudaGetErrorString(error));
  return error == cudaErrorMemoryAllocation
             ? absl::ResourceExhaustedError(words)
             : absl::UnavailableError(words);
}

// Of the kernel launched just before this.
inline absl::Status LaunchStatus(absl::string_view kernel) {
  return CudaStatus(cudaGetLastError(), kernel);
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_STATUS_H_
