#ifndef PARASOL_ML_DEVICE_CUDA_BLAS_H_
#define PARASOL_ML_DEVICE_CUDA_BLAS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/matrix.h"
#include "ml/device/precision.h"

struct CUstream_st;

namespace parasol {

// cuBLAS, opened when it is first needed. If it were linked, every process that
// may compute would map its 600 MB (half a second from a cold disk), and
// machines without a GPU would need it too.
class CudaBlas {
 public:
  // Opens cuBLAS for the calling thread's device; all work goes to `stream`.
  // `releases` is the device's counter of releases (Device::releases()) and
  // must outlive the result.
  //   FailedPrecondition  the library is not on this machine: names the places
  //                       that were searched.
  static absl::StatusOr<std::unique_ptr<CudaBlas>> Open(CUstream_st* stream,
                                                        Precision precision,
                                                        uint64_t& releases);
  virtual ~CudaBlas() = default;

  // Computes c = op(a) · op(b), where `a` and `b` are given as they lie in
  // memory. The factors have the precision of Open(), all else is float32.
  virtual absl::Status Multiply(MatrixView a, Transpose transpose_a,
                                MatrixView b, Transpose transpose_b,
                                MutableMatrixView c) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_BLAS_H_
