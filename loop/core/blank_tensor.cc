#include "loop/core/blank_tensor.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "ml/tape/tensor_memory.h"

namespace parasol::loop {

Tensor BlankTensor(const TensorShape& shape, float** elements) {
  const size_t bytes = shape.size() * sizeof(float);
  const std::shared_ptr<void> memory = NewTensorMemory(bytes);
  *elements = static_cast<float*>(memory.get());
  if (memory == nullptr) {
    return Tensor::Error(absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes,
                     " bytes of a tensor of the shape ", shape.ToString())));
  }
  return Tensor::Alias(std::static_pointer_cast<const float>(memory), shape);
}

}  // namespace parasol::loop
