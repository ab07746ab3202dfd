#ifndef PARASOL_ML_ZOO_MLP_H_
#define PARASOL_ML_ZOO_MLP_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct MlpOptions {
  std::vector<int64_t> input_shape = {28, 28};
  // Number of units of each hidden layer; all have relu.
  std::vector<int64_t> hidden = {512};
  int64_t classes = 10;
  // Share of the hidden units that are 0 in a training step.
  double dropout = 0;
  double l2 = 0;
};

job::Model Mlp(const MlpOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_MLP_H_
