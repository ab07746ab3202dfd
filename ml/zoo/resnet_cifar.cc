#include "ml/zoo/resnet_cifar.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/normalized_convolution.h"

namespace parasol::zoo {
namespace {

struct Block {
  std::string name;
  int64_t filters = 0;
  // The maps are half as high and wide as the input's, which has half as many
  // channels.
  bool halves = false;
};

class ResNet {
 public:
  explicit ResNet(const ResNetCifarOptions& options) : options_(options) {}

  job::Model Build() {
    const int64_t side = options_.image_size;
    Value x = model_.DenseInput("image", {side, side, 3});
    x = ConvolutionAndNorm(x, {"stem", 16}, /*stride=*/1, job::Initializer());
    x = layers::Relu(x, {"stem/relu"});
    for (int stage = 0; stage < 3; ++stage) {
      for (int64_t i = 0; i < options_.blocks_per_stage; ++i) {
        x = Residual(x,
                     {.name = absl::StrCat("stage", stage + 1, "/block", i + 1),
                      .filters = int64_t{16} << stage,
                      .halves = stage > 0 && i == 0});
      }
    }
    x = layers::GlobalAveragePool(x, {"mean"});
    layers::Dense(x, {.units = options_.classes,
                      .kernel_initializer = HeNormal(),
                      .kernel_l2 = options_.l2,
                      .name = "logits"});
    model_.SetLoss(SparseCategoricalCrossentropy());
    return model_.Build();
  }

 private:
  struct Convolution {
    std::string name;
    int64_t filters = 0;
  };

  Value ConvolutionAndNorm(const Value& x, const Convolution& convolution,
                           int64_t stride, const job::Initializer& gamma) {
    return NormalizedConvolution(x, {.name = convolution.name,
                                     .filters = convolution.filters,
                                     .window = 3,
                                     .stride = stride,
                                     .l2 = options_.l2,
                                     .momentum = options_.batch_norm_momentum,
                                     .gamma = gamma});
  }

  Value Residual(const Value& x, const Block& block) {
    Value y = ConvolutionAndNorm(x, {block.name + "/1", block.filters},
                                 block.halves ? 2 : 1, job::Initializer());
    y = layers::Relu(y, {block.name + "/1/relu"});
    y = ConvolutionAndNorm(y, {block.name + "/2", block.filters}, /*stride=*/1,
                           Zeros());
    y = layers::Add({y, block.halves ? Halved(x, block) : x},
                    {block.name + "/add"});
    return layers::Relu(y, {block.name + "/relu"});
  }

  Value Halved(const Value& x, const Block& block) {
    const Value every_second = layers::AveragePool(
        x, {.pool_size = {1}, .stride = {2}, .name = block.name + "/half"});
    const int64_t missing = block.filters / 4;
    return layers::Pad(every_second, {.before = {0, 0, missing},
                                      .after = {0, 0, missing},
                                      .name = block.name + "/pad"});
  }

  const ResNetCifarOptions options_;
  ModelBuilder model_;
};

}  // namespace

job::Model ResNetCifar(const ResNetCifarOptions& options) {
  return ResNet(options).Build();
}

}  // namespace parasol::zoo
