#ifndef PARASOL_ML_DEVICE_CUDA_STATUS_H_
#define PARASOL_ML_DEVICE_CUDA_STATUS_H_

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Returns CUDA's `error` of the operation `what` as a status: ResourceExhausted
// if CUDA is out of memory; Unavailable for all other errors, which mean that
// the device can no longer be used. Only for .cu files.
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  // Clears the error, which the next launch would otherwise report as its own.
  cudaGetLastError();
  const std::string words = absl::StrCat(what, ": ", cudaGetErrorString(error));
  return error == cudaErrorMemoryAllocation
             ? absl::ResourceExhaustedError(words)
             : absl::UnavailableError(words);
}

// Returns the status of the kernel launched just before this call.
inline absl::Status LaunchStatus(absl::string_view kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return absl::OkStatus();
  int device = 0;
  cudaGetDevice(&device);
  return CudaStatus(error, absl::StrCat(kernel, " on cuda:", device));
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_STATUS_H_
