#include "ml/zoo/mlp.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {

job::Model Mlp(const MlpOptions& options) {
  ModelBuilder model;
  Value x = model.DenseInput("input", options.input_shape);
  x = layers::Flatten(x);
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    x = layers::Dense(x,
                      {.units = options.hidden[i],
                       .activation = job::RELU,
                       .kernel_l2 = options.l2,
                       .name = i == 0 ? "hidden" : absl::StrCat("hidden_", i)});
    if (options.dropout > 0) x = layers::Dropout(x, options.dropout);
  }
  layers::Dense(
      x, {.units = options.classes, .kernel_l2 = options.l2, .name = "logits"});
  model.SetLoss(SparseCategoricalCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
