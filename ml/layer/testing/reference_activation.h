#ifndef PARASOL_ML_LAYER_TESTING_REFERENCE_ACTIVATION_H_
#define PARASOL_ML_LAYER_TESTING_REFERENCE_ACTIVATION_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::reference {

inline double Activation(job::Activation activation, double x) {
  switch (activation) {
    case job::RELU:
      return x < 0 ? 0 : x;
    case job::SIGMOID:
      return 1 / (1 + std::exp(-x));
    case job::TANH:
      return std::tanh(x);
    case job::GELU:
      return x * std::erfc(-x / std::sqrt(2)) / 2;
    case job::LEAKY_RELU:
      return x < 0 ? .2 * x : x;
    case job::SILU:
      return x / (1 + std::exp(-x));
    case job::SOFTPLUS:
      return std::log1p(std::exp(x));
    case job::ELU:
      return x < 0 ? std::expm1(x) : x;
    default:
      return x;
  }
}

// Returns the activation of x [rows, columns]; a softmax is over the columns.
inline std::vector<double> Activation(job::Activation activation,
                                      std::vector<double> x, int64_t columns) {
  for (size_t begin = 0; begin < x.size(); begin += columns) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[begin + i]);
    for (int64_t i = 0; i < columns; ++i) {
      double& value = x[begin + i];
      value = activation == job::SOFTMAX ? std::exp(value) / sum
                                         : Activation(activation, value);
    }
  }
  return x;
}

}  // namespace parasol::reference

#endif  // PARASOL_ML_LAYER_TESTING_REFERENCE_ACTIVATION_H_
