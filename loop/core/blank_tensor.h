#ifndef PARASOL_LOOP_CORE_BLANK_TENSOR_H_
#define PARASOL_LOOP_CORE_BLANK_TENSOR_H_

#include "ml/tape/tensor.h"

namespace parasol::loop {

// Returns a float32 tensor whose elements the caller writes at `elements`,
// before anybody reads them.
//   ResourceExhausted  (as the tensor's status) there is no memory.
Tensor BlankTensor(const TensorShape& shape, float** elements);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_BLANK_TENSOR_H_
