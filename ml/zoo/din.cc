#include "ml/zoo/din.h"

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/builder/sequence_layers.h"
#include "ml/zoo/dense_tower.h"

namespace parasol::zoo {
namespace {

// The weight of each step [steps], of the network's inputs [steps, channels]: a
// convolution whose windows are single steps is a dense layer on each.
Value StepWeights(Value x, const DinOptions& options) {
  int layer = 0;
  for (const int64_t units : options.attention) {
    x = layers::Conv1D(x, {.filters = units,
                           .kernel_size = 1,
                           .activation = job::RELU,
                           .name = absl::StrCat("attention_", ++layer)});
  }
  x = layers::Conv1D(
      x, {.filters = 1, .kernel_size = 1, .name = "attention_weights"});
  return layers::Reshape(x, {options.steps}, {"weights"});
}

}  // namespace

job::Model Din(const DinOptions& options) {
  const int64_t width = options.embedding_width;
  ModelBuilder model;
  const Value candidate = model.IdInput("candidate", {options.candidate});
  const Value history =
      model.SequenceInput("history", options.history, options.steps);
  const Value mask = ModelBuilder::MaskOf(history);
  const std::string table = model.SparseTable("items", width);
  const Value row =
      layers::Embedding(candidate, {.table = table, .name = "candidate_row"});
  const Value item = layers::Flatten(row, {"item"});
  const Value items =
      layers::Embedding(history, {.table = table, .name = "items_before"});
  // The candidate's row at each step that there is: 1 · row.
  const Value ones =
      layers::Reshape(mask, {options.steps, 1}, {"steps_with_an_item"});
  const Value column = layers::Reshape(item, {width, 1}, {"item_as_a_column"});
  const Value beside = layers::Dot(ones, column, {.name = "item_at_each_step"});
  const Value product = layers::Multiply({items, beside}, {"products"});
  const Value pairs =
      layers::Concatenate({items, beside, product}, layers::Named{"pairs"});
  const Value weights = layers::Multiply({StepWeights(pairs, options), mask},
                                         {"weights_of_steps"});
  const Value interest = layers::WeightedSum(weights, items, {"interest"});
  const Value both = layers::Multiply({interest, item}, {"match"});
  const Value x =
      layers::Concatenate({interest, item, both}, layers::Named{"features"});
  layers::Dense(HiddenLayers(x, "hidden", options.hidden),
                {.units = 1, .name = "logit"});
  model.SetLoss(BinaryCrossentropy());
  return model.Build();
}

}  // namespace parasol::zoo
