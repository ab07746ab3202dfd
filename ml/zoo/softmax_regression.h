#ifndef PARASOL_ML_ZOO_SOFTMAX_REGRESSION_H_
#define PARASOL_ML_ZOO_SOFTMAX_REGRESSION_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct SoftmaxRegressionOptions {
  std::vector<int64_t> input_shape = {28, 28};
  int64_t classes = 10;
  double l2 = 0;
};

// p(class | x) = softmax(x · kernel + bias); everything starts at 0.
job::Model SoftmaxRegression(const SoftmaxRegressionOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_SOFTMAX_REGRESSION_H_
