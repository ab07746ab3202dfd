#include "ml/zoo/lenet.h"

#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {

job::Model LeNet(const LeNetOptions& options) {
  ModelBuilder model;
  Value x = model.DenseInput("input", options.input_shape);
  // The paper's images are 32 × 32, with 28 × 28 left by the first convolution.
  x = layers::Conv2D(x, {.filters = 6,
                         .kernel_size = {5},
                         .padding = job::SAME,
                         .activation = job::RELU,
                         .name = "c1"});
  x = layers::MaxPool(x, {.pool_size = {2}, .name = "s2"});
  x = layers::Conv2D(x, {.filters = 16,
                         .kernel_size = {5},
                         .activation = job::RELU,
                         .name = "c3"});
  x = layers::MaxPool(x, {.pool_size = {2}, .name = "s4"});
  x = layers::Flatten(x);
  x = layers::Dense(x, {.units = 120, .activation = job::RELU, .name = "f5"});
  x = layers::Dense(x, {.units = 84, .activation = job::RELU, .name = "f6"});
  layers::Dense(x, {.units = options.classes, .name = "logits"});
  model.SetLoss(SparseCategoricalCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
