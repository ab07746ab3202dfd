#ifndef PARASOL_ML_LAYER_VARIABLE_SPEC_H_
#define PARASOL_ML_LAYER_VARIABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol {

// A float32 variable of a model, whole (before it is split).
struct VariableSpec {
  std::string name = {};  // "dense_1/kernel"
  std::vector<int64_t> shape = {};
  job::Initializer initializer = {};
  // False: no optimizer changes it. What is pushed for it is subtracted as it
  // is (moving means): the ps holds it with SGD, learning rate 1.
  bool trained = true;

  int64_t elements() const;  // 1 for a scalar
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_VARIABLE_SPEC_H_
