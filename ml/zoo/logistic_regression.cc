#include "ml/zoo/logistic_regression.h"

#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {

job::Model LogisticRegression(const LogisticRegressionOptions& options) {
  ModelBuilder model;
  const Value features = model.IdInput(options.input, options.columns);
  const std::string weights =
      model.SparseTable("weights", /*width=*/1, {.initializer = Zeros()});
  layers::EmbeddingBag(
      features,
      {.table = weights, .use_bias = true, .l2 = options.l2, .name = "logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
