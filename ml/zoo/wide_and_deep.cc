#include "ml/zoo/wide_and_deep.h"

#include <string>

#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {
namespace {

Value Wide(ModelBuilder& model, const WideAndDeepOptions& options) {
  const Value ids = model.IdInput("wide", options.wide);
  const std::string weights = model.SparseTable(
      "wide_weights", /*width=*/1,
      {.initializer = Zeros(), .optimizer = options.wide_optimizer});
  return layers::EmbeddingBag(
      ids, {.table = weights, .use_bias = true, .name = "wide_logit"});
}

Value Deep(ModelBuilder& model, const WideAndDeepOptions& options) {
  const Value ids = model.IdInput("deep", options.deep);
  const std::string table =
      model.SparseTable("embeddings", options.embedding_width);
  Value x = layers::Embedding(ids, {.table = table, .name = "embedding"});
  x = layers::Flatten(x, {"embedded"});
  if (!options.numeric.empty()) {
    const int64_t numbers = options.numeric.size();
    x = layers::Concatenate(
        {x, model.DenseInput("numeric", {numbers}, options.numeric)},
        {"deep_input"});
  }
  return DenseTower(x, options.hidden, options.dropout);
}

}  // namespace

job::Model WideAndDeep(const WideAndDeepOptions& options) {
  ModelBuilder model;
  const Value wide = Wide(model, options);
  const Value deep = Deep(model, options);
  layers::Add({wide, deep}, {"logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
