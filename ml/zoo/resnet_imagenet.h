#ifndef PARASOL_ML_ZOO_RESNET_IMAGENET_H_
#define PARASOL_ML_ZOO_RESNET_IMAGENET_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct ResNetImageNetOptions {
  // Blocks of each stage: these are ResNet-50's; {3, 4, 23, 3} is ResNet-101.
  std::vector<int64_t> blocks = {3, 4, 6, 3};
  // Side of a square image of three channels, in pixels.
  int64_t image_size = 224;
  int64_t classes = 1000;
  // l2 of all kernels: half the weight decay of 1e-4, as in ResNetCifarOptions.
  double l2 = 5e-5;
  double batch_norm_momentum = .9;
};

// The residual network for ImageNet of He et al. 2015, table 1, with bottleneck
// blocks: a 7 × 7 convolution and a pooling that halve the image twice; stages
// of 256, 512, 1024 and 2048 channels, of blocks of a 1 × 1, a 3 × 3 and a
// 1 × 1 convolution, each followed by batch normalization; the mean over the
// map; one dense layer. A shortcut between maps of different shapes is a
// 1 × 1 convolution (option B).
//
// Two things differ from the paper, as in most implementations ("version
// 1.5"): the 3 × 3 convolution of a stage's first block halves the map instead
// of the 1 × 1 one, and the last gamma of a block starts at 0 (Goyal et al.
// 2017).
job::Model ResNetImageNet(const ResNetImageNetOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_RESNET_IMAGENET_H_
