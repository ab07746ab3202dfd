#include "ml/zoo/softmax_regression.h"

#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {

job::Model SoftmaxRegression(const SoftmaxRegressionOptions& options) {
  ModelBuilder model;
  Value x = model.DenseInput("input", options.input_shape);
  x = layers::Flatten(x);
  layers::Dense(x, {.units = options.classes,
                    .kernel_initializer = Zeros(),
                    .kernel_l2 = options.l2,
                    .name = "logits"});
  model.SetLoss(SparseCategoricalCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
