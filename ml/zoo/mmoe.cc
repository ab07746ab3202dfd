#include "ml/zoo/mmoe.h"

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {
namespace {

Value Features(ModelBuilder& model, const MmoeOptions& options) {
  const Value ids = model.IdInput("fields", options.fields);
  const std::string table =
      model.SparseTable("embeddings", options.embedding_width);
  const Value rows =
      layers::Embedding(ids, {.table = table, .name = "embedding"});
  const Value embedded = layers::Flatten(rows, {"embedded"});
  if (options.numeric.empty()) return embedded;
  const int64_t numbers = options.numeric.size();
  return layers::Concatenate(
      {embedded, model.DenseInput("numeric", {numbers}, options.numeric)},
      {"all"});
}

}  // namespace

job::Model Mmoe(const MmoeOptions& options) {
  ModelBuilder model;
  const Value x = Features(model, options);
  const Value all =
      layers::Dense(x, {.units = options.experts * options.expert_units,
                        .activation = job::RELU,
                        .name = "experts"});
  const Value experts = layers::Reshape(
      all, {options.experts, options.expert_units}, {"expert_rows"});
  for (const Task& task : options.tasks) {
    const Value gate =
        layers::Dense(x, {.units = options.experts,
                          .use_bias = false,
                          .activation = job::SOFTMAX,
                          .name = absl::StrCat(task.name, "_gate")});
    const Value mixed = layers::WeightedSum(
        gate, experts, {absl::StrCat(task.name, "_mixture")});
    const Value hidden =
        HiddenLayers(mixed, absl::StrCat(task.name, "_tower"), options.tower);
    const Value logit = layers::Dense(hidden, {.units = 1, .name = task.name});
    model.AddOutput(task.name, logit,
                    {.loss = BinaryCrossentropy(),
                     .label = task.label,
                     .mask = task.mask,
                     .weight = task.weight});
  }
  return model.Build();
}

}  // namespace parasol::zoo
