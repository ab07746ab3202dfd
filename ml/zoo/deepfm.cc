#include "ml/zoo/deepfm.h"

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "ml/builder/initializers.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"

namespace parasol::zoo {
namespace {

Value Network(Value x, const DeepFmOptions& options) {
  for (size_t i = 0; i < options.hidden.size(); ++i) {
    x = layers::Dense(x, {.units = options.hidden[i],
                          .activation = job::RELU,
                          .name = absl::StrCat("hidden_", i + 1)});
    if (options.dropout > 0) {
      x = layers::Dropout(x, options.dropout,
                          {absl::StrCat("dropout_", i + 1)});
    }
  }
  // The linear part has the bias.
  return layers::Dense(x,
                       {.units = 1, .use_bias = false, .name = "deep_logit"});
}

}  // namespace

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
  const Value deep = Network(layers::Flatten(embedding, {"embedded"}), options);
  layers::Add({linear, pairs, deep}, {"logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
