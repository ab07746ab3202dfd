#include "ml/zoo/resnet_imagenet.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/normalized_convolution.h"

namespace parasol::zoo {
namespace {

// A bottleneck's last convolution has this many times the filters of the
// others.
constexpr int64_t kExpansion = 4;

class ImageNetResNet {
 public:
  explicit ImageNetResNet(const ResNetImageNetOptions& options)
      : options_(options) {}

  job::Model Build() {
    const int64_t side = options_.image_size;
    Value x = model_.DenseInput("image", {side, side, 3});
    x = Activated(x, {.name = "stem", .filters = 64, .window = 7, .stride = 2});
    x = layers::MaxPool(x, {.pool_size = {3},
                            .stride = {2},
                            .padding = job::SAME,
                            .name = "stem/pool"});
    for (size_t stage = 0; stage < options_.blocks.size(); ++stage) {
      for (int64_t i = 0; i < options_.blocks[stage]; ++i) {
        x = Bottleneck(x, absl::StrCat("stage", stage + 1, "/block", i + 1),
                       int64_t{64} << stage,
                       {.is_first = i == 0, .halves = stage > 0 && i == 0});
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
    int64_t window = 1;
    int64_t stride = 1;
  };
  struct Place {
    bool is_first = false;  // of its stage: its input has another shape
    bool halves = false;
  };

  Value Normalized(const Value& x, const Convolution& convolution,
                   const job::Initializer& gamma = {}) {
    return NormalizedConvolution(x, {.name = convolution.name,
                                     .filters = convolution.filters,
                                     .window = convolution.window,
                                     .stride = convolution.stride,
                                     .l2 = options_.l2,
                                     .momentum = options_.batch_norm_momentum,
                                     .gamma = gamma});
  }

  Value Activated(const Value& x, const Convolution& convolution) {
    return layers::Relu(Normalized(x, convolution),
                        {convolution.name + "/relu"});
  }

  Value Bottleneck(const Value& x, const std::string& name, int64_t filters,
                   const Place& place) {
    const int64_t stride = place.halves ? 2 : 1;
    const int64_t expanded = kExpansion * filters;
    Value y = Activated(x, {.name = name + "/1", .filters = filters});
    y = Activated(y, {.name = name + "/2",
                      .filters = filters,
                      .window = 3,
                      .stride = stride});
    y = Normalized(y, {.name = name + "/3", .filters = expanded}, Zeros());
    const Value shortcut = place.is_first
                               ? Normalized(x, {.name = name + "/shortcut",
                                                .filters = expanded,
                                                .stride = stride})
                               : x;
    y = layers::Add({y, shortcut}, {name + "/add"});
    return layers::Relu(y, {name + "/relu"});
  }

  const ResNetImageNetOptions options_;
  ModelBuilder model_;
};

}  // namespace

job::Model ResNetImageNet(const ResNetImageNetOptions& options) {
  return ImageNetResNet(options).Build();
}

}  // namespace parasol::zoo
