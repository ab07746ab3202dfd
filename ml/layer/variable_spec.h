#ifndef PARASOL_ML_LAYER_VARIABLE_SPEC_H_
#define PARASOL_ML_LAYER_VARIABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol {

// A float32 variable of a model, whole (before it is split into parts).
struct VariableSpec {
  std::string name = {};  // "dense_1/kernel"
  std::vector<int64_t> shape = {};
  job::Initializer initializer = {};
  // False if no optimizer changes the variable, as for moving means. The ps
  // subtracts what is pushed for it as it is: it holds the variable with SGD
  // and learning rate 1.
  bool trained = true;
  // True if nothing changes the variable: it has no gradient, and `trained` is
  // false.
  bool frozen = false;
  // Factor of the learning rate, above 0.
  double learning_rate_multiplier = 1;

  int64_t elements() const;  // 1 for a scalar
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_VARIABLE_SPEC_H_
