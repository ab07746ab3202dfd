#ifndef PARASOL_ML_DEVICE_CUDA_SCRATCH_H_
#define PARASOL_ML_DEVICE_CUDA_SCRATCH_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/device/cuda_status.h"

namespace parasol {

// Memory on the calling thread's CUDA device that the work of one stream uses
// between two kernels. Grows to the largest size that Reserve() was asked for.
class CudaScratch {
 public:
  // `releases` is the device's counter of releases and must outlive this
  // object.
  CudaScratch(CUstream_st* stream, uint64_t& releases)
      : stream_(stream), releases_(releases) {}
  CudaScratch(const CudaScratch&) = delete;
  CudaScratch& operator=(const CudaScratch&) = delete;
  ~CudaScratch() { cudaFree(data_); }

  // Returns at least `bytes` of scratch memory. If it has to grow, it waits for
  // the stream, and the memory that the last call returned is freed.
  //   ResourceExhausted  the device is full.
  absl::StatusOr<void*> Reserve(size_t bytes) {
    if (bytes <= bytes_) return data_;
    RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream_), "scratch"));
    if (data_ != nullptr) ++releases_;
    cudaFree(data_);
    data_ = nullptr;
    bytes_ = 0;
    RETURN_IF_ERROR(CudaStatus(cudaMalloc(&data_, bytes),
                               absl::StrCat(bytes, " bytes of scratch")));
    bytes_ = bytes;
    return data_;
  }

 private:
  CUstream_st* const stream_;
  uint64_t& releases_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_SCRATCH_H_
