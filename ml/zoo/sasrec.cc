#include "ml/zoo/sasrec.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/builder/sequence_layers.h"

namespace parasol::zoo {
namespace {

Value Dropped(const Value& x, const std::string& name, double rate) {
  return rate > 0 ? layers::Dropout(x, rate, {name}) : x;
}

// Attention between the steps, and then a network on each, both added to what
// they read.
Value Block(const Value& x, const Value& mask, int64_t number,
            const SasRecOptions& options) {
  const auto name = [number](const char* what) {
    return absl::StrCat("block_", number, "_", what);
  };
  const Value seen = layers::LayerNormalization(x, {.name = name("seen")});
  const Value attention = layers::MultiHeadAttention(
      {seen, seen, mask}, {.num_heads = options.heads,
                           .key_dim = options.width / options.heads,
                           .masked = true,
                           .name = name("attention")});
  const Value steps = layers::Add(
      {x, Dropped(attention, name("attention_dropped"), options.dropout)},
      {name("steps")});
  Value y = layers::LayerNormalization(steps, {.name = name("normal")});
  y = layers::Conv1D(y, {.filters = options.width,
                         .kernel_size = 1,
                         .activation = job::RELU,
                         .name = name("hidden")});
  y = layers::Conv1D(
      y, {.filters = options.width, .kernel_size = 1, .name = name("network")});
  return layers::Add(
      {steps, Dropped(y, name("network_dropped"), options.dropout)},
      {name("output")});
}

// The first step: a pooling of windows of one step that are further apart than
// there are steps.
Value NewestStep(const Value& x, const SasRecOptions& options) {
  const Value image =
      layers::Reshape(x, {options.steps, 1, options.width}, {"steps"});
  const Value newest = layers::MaxPool(image, {.pool_size = {1, 1},
                                               .stride = {options.steps, 1},
                                               .name = "newest_step"});
  return layers::Flatten(newest, {"next_vector"});
}

job::CsvLabel LabelIn(const std::string& column) {
  job::CsvLabel label;
  label.set_column(column);
  return label;
}

std::vector<job::Metric> Rankings(const SasRecOptions& options) {
  std::vector<job::Metric> metrics(2);
  metrics[0].mutable_recall_at_k()->set_group(options.group);
  metrics[0].mutable_recall_at_k()->set_k(options.k);
  metrics[1].mutable_ndcg()->set_group(options.group);
  metrics[1].mutable_ndcg()->set_k(options.k);
  return metrics;
}

}  // namespace

job::Model SasRec(const SasRecOptions& options) {
  ModelBuilder model;
  const Value item = model.IdInput("item", {options.item});
  const Value history = model.SequenceInput(
      "history", options.history, options.steps, job::IdSequence::FIRST);
  const Value mask = ModelBuilder::MaskOf(history);
  const std::string table = model.SparseTable("items", options.width);
  Value x =
      layers::Embedding(history, {.table = table, .name = "items_before"});
  x = layers::PositionalEmbedding(x, {.name = "placed"});
  for (int64_t i = 1; i <= options.blocks; ++i) {
    x = Block(x, mask, i, options);
  }
  x = layers::LayerNormalization(x, {.name = "normal"});
  const Value next = NewestStep(x, options);
  const Value row =
      layers::Embedding(item, {.table = table, .name = "item_row"});
  const Value vector = layers::Flatten(row, {"item_vector"});
  const Value both = layers::Concatenate({next, vector}, layers::Named{"both"});
  const Value towers = layers::Reshape(both, {2, options.width}, {"towers"});
  const Value score = layers::Dot(next, vector, {.name = "score"});
  model.AddOutput("towers", towers,
                  {.loss = InBatchSoftmax({.temperature = options.temperature,
                                           .candidate = options.item.name(0)}),
                   .mask = options.taken});
  model.AddOutput("score", score,
                  {.loss = BinaryCrossentropy(),
                   .label = LabelIn(options.taken),
                   .weight = 0,
                   .metrics = Rankings(options)});
  return model.Build();
}

}  // namespace parasol::zoo
