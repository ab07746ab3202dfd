#ifndef PARASOL_ML_ZOO_RESNET_CIFAR_H_
#define PARASOL_ML_ZOO_RESNET_CIFAR_H_

#include <cstdint>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct ResNetCifarOptions {
  // The n of He et al., for 6n + 2 layers: 9 is ResNet-56, 3 is ResNet-20.
  int64_t blocks_per_stage = 9;
  // Side of a square image of three channels, in pixels.
  int64_t image_size = 32;
  int64_t classes = 10;
  // l2 of all kernels. The paper's weight decay d of 1e-4 adds d · w to a
  // gradient, as an l2 of d / 2 does.
  double l2 = 5e-5;
  double batch_norm_momentum = .9;
};

// The residual network for CIFAR of He et al. 2015, section 4.2: a 3 × 3
// convolution; three stages of 16, 32 and 64 channels on maps of 32, 16 and 8,
// of blocks of two 3 × 3 convolutions, each followed by batch normalization;
// the mean over the map; one dense layer. Shortcuts have no parameters (option
// A): where the map is halved they take every second row and column, and the
// channels that are missing are zeros, half of them on either side.
//
// One thing differs from the paper: the last gamma of a block starts at 0, so
// that a block is the identity at first (Goyal et al. 2017), and a learning
// rate of .1 needs no warm-up.
job::Model ResNetCifar(const ResNetCifarOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_RESNET_CIFAR_H_
