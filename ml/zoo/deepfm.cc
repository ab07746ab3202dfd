#include "ml/zoo/deepfm.h"

#include <string>

#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {

job::Model DeepFm(const DeepFmOptions& options) {
  ModelBuilder model;
  const Value fields = model.IdInput("fields", options.fields);
  const std::string weights =
      model.SparseTable("weights", /*width=*/1, {.initializer = Zeros()});
  const std::string embeddings =
      model.SparseTable("embeddings", options.embedding_width,
                        {.initializer = RandomNormal(.01)});
  const Value linear = layers::EmbeddingBag(
      fields, {.table = weights, .use_bias = true, .name = "linear_logit"});
  const Value embedding = layers::Embedding(
      fields,
      {.table = embeddings, .l2 = options.embedding_l2, .name = "embedding"});
  const Value pairs =
      layers::FactorizationMachine(embedding, {"pairwise_logit"});
  const Value deep = DenseTower(layers::Flatten(embedding, {"embedded"}),
                                options.hidden, options.dropout);
  layers::Add({linear, pairs, deep}, {"logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
