#ifndef PARASOL_ML_TAPE_SOFTMAX_H_
#define PARASOL_ML_TAPE_SOFTMAX_H_

#include "ml/tape/tensor.h"

namespace parasol {

// Softmax, and its logarithm, over the innermost axis, float32. The largest
// number is subtracted before the exponential, so that no finite one overflows.
// InvalidArgument (as the result's status): a scalar, or an empty axis.
Tensor Softmax(const Tensor& x);
Tensor LogSoftmax(const Tensor& x);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_SOFTMAX_H_
