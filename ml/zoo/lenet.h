#ifndef PARASOL_ML_ZOO_LENET_H_
#define PARASOL_ML_ZOO_LENET_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct LeNetOptions {
  std::vector<int64_t> input_shape = {28, 28, 1};
  int64_t classes = 10;
};

// LeNet-5 (LeCun et al. 1998) with relu and max pooling in place of the sigmoid
// and the trained subsampling of its time: 61,706 parameters for MNIST.
job::Model LeNet(const LeNetOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_LENET_H_
