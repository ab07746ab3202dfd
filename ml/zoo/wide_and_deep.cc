#include "ml/zoo/wide_and_deep.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

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
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    x = layers::Dense(x, {.units = options.hidden[i],
                          .activation = job::RELU,
                          .name = absl::StrCat("hidden_", i + 1)});
    if (options.dropout > 0) {
      x = layers::Dropout(x, options.dropout,
                          {absl::StrCat("dropout_", i + 1)});
    }
  }
  // The wide part has the bias.
  return layers::Dense(x,
                       {.units = 1, .use_bias = false, .name = "deep_logit"});
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
