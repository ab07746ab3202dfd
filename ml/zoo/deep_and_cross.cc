#include "ml/zoo/deep_and_cross.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {

job::Model DeepAndCross(const DeepAndCrossOptions& options) {
  ModelBuilder model;
  const Value fields = model.IdInput("fields", options.fields);
  const std::string table =
      model.SparseTable("embeddings", options.embedding_width);
  Value input =
      layers::Embedding(fields, {.table = table, .name = "embedding"});
  input = layers::Flatten(input, {"embedded"});
  if (!options.numeric.empty()) {
    const int64_t numbers = options.numeric.size();
    input = layers::Concatenate(
        {input, model.DenseInput("numeric", {numbers}, options.numeric)},
        {"all"});
  }
  Value cross = input;
  for (int64_t i = 0; i < options.cross_layers; ++i) {
    cross = layers::Cross(input, cross,
                          {.projection_dim = options.projection_dim,
                           .name = absl::StrCat("cross_", i + 1)});
  }
  const Value deep = HiddenLayers(input, "hidden", options.hidden);
  layers::Dense(layers::Concatenate({cross, deep}, {"both"}),
                {.units = 1, .name = "logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
