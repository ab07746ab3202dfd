#ifndef PARASOL_STORAGE_TENSOR_FILES_PICKLED_TENSORS_H_
#define PARASOL_STORAGE_TENSOR_FILES_PICKLED_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// A tensor in a pickle of PyTorch's: a view of a storage, whose bytes are
// elsewhere.
struct PickledTensor {
  TensorInfo info = {};
  std::string storage = {};  // the storage's key
  uint64_t offset = 0;       // elements before the first one
  bool is_contiguous = true;
};

// Returns the tensors in the dictionary that `pickle` is, in its order. A
// tensor of a dictionary in it has a name such as "model.hidden.weight". Goes
// by what torch.save() writes and makes no other objects. Pure.
//   DataLoss         the bytes are no pickle, or do what state_dicts don't.
//   InvalidArgument  the pickle is no dictionary, but a module.
absl::StatusOr<std::vector<PickledTensor>> PickledTensors(
    absl::string_view pickle);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_PICKLED_TENSORS_H_
