#ifndef PARASOL_ML_KERNEL_SOFTMAX_CROSS_ENTROPY_H_
#define PARASOL_ML_KERNEL_SOFTMAX_CROSS_ENTROPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/kernel/device.h"
#include "ml/kernel/matrix.h"

namespace parasol {

// Where the results for `logits.rows` examples go, in the device's memory.
struct CrossEntropyOutputs {
  float* loss = nullptr;       // of each example
  int32_t* correct = nullptr;  // 1 where the first largest logit is the label's
  // [rows, columns]: of the *mean* loss by each logit. Not computed when null.
  float* gradient = nullptr;
};

// With p = softmax(row) and l = the row's label, in [0, columns):
//   loss = −log p[l],   gradient[j] = (p[j] − [j = l]) / rows.
// The row's maximum is subtracted before the exponential, so that no finite
// logit overflows. Enqueues on the compute stream and returns. Outputs overlap
// no input. Unavailable: the device was lost.
absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out);

// What the function above chooses from.
namespace cpu {
absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out);
}  // namespace cpu

namespace cuda {
absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SOFTMAX_CROSS_ENTROPY_H_
