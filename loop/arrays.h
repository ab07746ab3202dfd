#ifndef PARASOL_LOOP_ARRAYS_H_
#define PARASOL_LOOP_ARRAYS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// Arrays in NumPy's files, as tensors of their shapes. float16, float32 and
// float64 become float32; bool and integers of all sizes become int64. Both
// functions may be called by any threads, and fail with
//   NotFound         there is no such file.
//   DataLoss         it is damaged: names it.
//   InvalidArgument  an array has elements of another type, is in Fortran's
//                    order, or has an integer beyond int64.

// Returns the arrays of an .npz file by their names.
absl::StatusOr<std::map<std::string, Tensor>> LoadNpz(const std::string& path);

// Returns the array of an .npy file.
absl::StatusOr<Tensor> LoadNpy(const std::string& path);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_ARRAYS_H_
