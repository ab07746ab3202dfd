#include "ml/zoo/matrix_factorization.h"

#include "ml/builder/columns.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {

job::Model MatrixFactorization(const MatrixFactorizationOptions& options) {
  ModelBuilder model;
  const Value pair =
      model.IdInput("pair", {Hashed(options.user), Hashed(options.item)});
  const std::string biases = model.SparseTable(
      "biases", /*width=*/1,
      {.initializer = Zeros(), .optimizer = options.bias_optimizer});
  const std::string factors =
      model.SparseTable("factors", options.factors,
                        {.initializer = RandomNormal(.05),
                         .optimizer = options.factor_optimizer});
  const Value bias = layers::EmbeddingBag(
      pair, {.table = biases, .l2 = options.bias_l2, .name = "bias"});
  const Value both = layers::Embedding(
      pair, {.table = factors, .l2 = options.factor_l2, .name = "embedding"});
  const Value product = layers::FactorizationMachine(both, {"product"});
  const Value deviation = layers::Add({bias, product}, {"deviation"});
  layers::Dense(deviation, {.units = 1,
                            .kernel_initializer = Constant(1),
                            .bias_initializer = Constant(options.mean_rating),
                            .name = "rating"});
  model.SetLoss(MeanSquaredError());
  return model.Build();
}

}  // namespace parasol::zoo
