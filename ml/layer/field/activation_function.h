#ifndef PARASOL_ML_LAYER_FIELD_ACTIVATION_FUNCTION_H_
#define PARASOL_ML_LAYER_FIELD_ACTIVATION_FUNCTION_H_

#include "ml/kernel/activation.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the kernels' constant for the job file's activation.
inline ActivationFunction FunctionOf(job::Activation activation) {
  switch (activation) {
    case job::ACTIVATION_UNSPECIFIED:
      return ActivationFunction::kLinear;
    case job::RELU:
      return ActivationFunction::kRelu;
    case job::SIGMOID:
      return ActivationFunction::kSigmoid;
    case job::TANH:
      return ActivationFunction::kTanh;
    case job::GELU:
      return ActivationFunction::kGelu;
    case job::SOFTMAX:
      return ActivationFunction::kSoftmax;
    case job::LEAKY_RELU:
      return ActivationFunction::kLeakyRelu;
    case job::SILU:
      return ActivationFunction::kSilu;
    case job::SOFTPLUS:
      return ActivationFunction::kSoftplus;
    case job::ELU:
      return ActivationFunction::kElu;
  }
  return ActivationFunction::kLinear;
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_FIELD_ACTIVATION_FUNCTION_H_
