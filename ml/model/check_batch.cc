#include "ml/model/check_batch.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/layer/id_inputs.h"

namespace parasol {
namespace {

// Largest number of elements of one array of a batch: kernels count in int32.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

absl::Status CheckSize(const Graph& graph, int64_t size) {
  int64_t widest = 1;
  for (size_t value = 0; value < graph.num_values(); ++value) {
    widest = std::max(widest, graph.ElementsOfValue(value));
  }
  const int64_t largest = kMaxElements / widest;
  if (size > 0 && size <= largest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a batch of ", size, " examples, not between 1 and ", largest));
}

absl::Status CheckWeights(const Batch& batch) {
  if (!batch.weights.empty() &&
      static_cast<int64_t>(batch.weights.size()) != batch.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples has ",
                     batch.weights.size(), " weights"));
  }
  return absl::OkStatus();
}

absl::Status CheckTargets(const Graph& graph, const Batch& batch) {
  const size_t named = graph.has_named_outputs() ? graph.outputs.size() : 0;
  if (batch.targets.size() != named) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch with labels of ", batch.targets.size(),
                     " named outputs, the model has ", named));
  }
  for (size_t i = 0; i < named; ++i) {
    const auto weights = static_cast<int64_t>(batch.targets[i].weights.size());
    if (weights == batch.size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples has ", weights,
                     " weights of output \"", graph.outputs[i].name, "\""));
  }
  return absl::OkStatus();
}

// Those that metrics read may come behind.
absl::Status CheckColumns(const Graph& graph, const Batch& batch) {
  const std::vector<ExampleColumn> columns = LossColumns(graph.outputs);
  if (batch.columns.size() < columns.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch with ", batch.columns.size(),
                     " columns beside labels, losses "
                     "read ",
                     columns.size()));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool has_keys = columns[i].kind == ExampleColumn::Kind::kKey;
    const size_t values = has_keys ? batch.columns[i].keys.size()
                                   : batch.columns[i].numbers.size();
    if (static_cast<int64_t>(values) == batch.size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples has ", values,
                     " values of column \"", columns[i].name, "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckShape(const LayerInput& what, const DenseFeature& feature) {
  if (feature.shape == what.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("examples are ", ShapeText(feature.shape),
                   ", the model's input is ", ShapeText(what.shape)));
}

absl::Status CheckDense(const LayerInput& what, int64_t examples,
                        absl::Span<const float> values) {
  const int64_t want = examples * ElementsOf(what.shape);
  if (static_cast<int64_t>(values.size()) == want) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a batch of ", examples, " examples has ", values.size(),
                   " features, not ", want));
}

absl::Status CheckOffsets(const IdsView& feature) {
  for (size_t i = 0; i + 1 < feature.offsets.size(); ++i) {
    if (feature.offsets[i] <= feature.offsets[i + 1]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("offset ", feature.offsets[i + 1], " behind ",
                     feature.offsets[i], " of example ", i));
  }
  if (feature.offsets.front() == 0 &&
      feature.offsets.back() == static_cast<int64_t>(feature.ids.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "offsets are from ", feature.offsets.front(), " to ",
      feature.offsets.back(), " for ", feature.ids.size(), " ids"));
}

absl::Status CheckIds(const GraphInput& input, int64_t examples,
                      const IdsView& feature) {
  if (static_cast<int64_t>(feature.ids.size()) > kMaxElements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", feature.ids.size(), " ids, not at most ", kMaxElements));
  }
  if (static_cast<int64_t>(feature.offsets.size()) != examples + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", examples, " examples has ",
                     feature.offsets.size(), " offsets, not ", examples + 1));
  }
  RETURN_IF_ERROR(CheckOffsets(feature));
  if (!feature.weights.empty() &&
      feature.weights.size() != feature.ids.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        feature.ids.size(), " ids have ", feature.weights.size(), " weights"));
  }
  const int64_t steps = StepsOf(input.what);
  for (int64_t i = 0; steps > 0 && i < examples; ++i) {
    const int64_t ids = feature.offsets[i + 1] - feature.offsets[i];
    if (ids <= steps) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("example ", i, " has ", ids,
                     " ids, the model's sequence at most ", steps));
  }
  for (int64_t i = 0; input.needs_each_column && i < examples; ++i) {
    const int64_t ids = feature.offsets[i + 1] - feature.offsets[i];
    if (ids == input.what.ids_per_example) continue;
    return absl::InvalidArgumentError(absl::StrCat("example ", i, " has ", ids,
                                                   " ids, the model's input ",
                                                   input.what.ids_per_example));
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(const Graph& graph, size_t dense, size_t ids) {
  size_t dense_inputs = 0;
  size_t id_inputs = 0;
  for (const GraphInput& input : graph.inputs) {
    ++(input.what.kind == LayerInput::Kind::kDense ? dense_inputs : id_inputs);
  }
  if (dense == dense_inputs && ids == id_inputs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a batch of ", dense, " tensors and ", ids, " id lists, the model has ",
      dense_inputs, " and ", id_inputs));
}

absl::Status CheckOne(const GraphInput& input, const Batch& batch) {
  if (input.what.kind == LayerInput::Kind::kDense) {
    const DenseFeature& feature = batch.dense[input.index];
    RETURN_IF_ERROR(CheckShape(input.what, feature));
    return CheckDense(input.what, batch.size, feature.values);
  }
  const IdFeature& feature = batch.ids[input.index];
  return CheckIds(input, batch.size,
                  {.offsets = feature.offsets,
                   .ids = feature.ids,
                   .weights = feature.weights});
}

absl::Status CheckOne(const GraphInput& input, const InputViews& inputs) {
  return input.what.kind == LayerInput::Kind::kDense
             ? CheckDense(input.what, inputs.size, inputs.dense[input.index])
             : CheckIds(input, inputs.size, inputs.ids[input.index]);
}

}  // namespace

absl::Status CheckBatch(const Graph& graph, const Batch& batch) {
  RETURN_IF_ERROR(CheckSize(graph, batch.size));
  RETURN_IF_ERROR(CheckWeights(batch));
  RETURN_IF_ERROR(CheckTargets(graph, batch));
  RETURN_IF_ERROR(CheckColumns(graph, batch));
  RETURN_IF_ERROR(CheckCounts(graph, batch.dense.size(), batch.ids.size()));
  for (const GraphInput& input : graph.inputs) {
    RETURN_IF_ERROR(CheckOne(input, batch)) << "input \"" << input.name << "\"";
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const Graph& graph, const InputViews& inputs) {
  RETURN_IF_ERROR(CheckSize(graph, inputs.size));
  RETURN_IF_ERROR(CheckCounts(graph, inputs.dense.size(), inputs.ids.size()));
  for (const GraphInput& input : graph.inputs) {
    RETURN_IF_ERROR(CheckOne(input, inputs))
        << "input \"" << input.name << "\"";
  }
  return absl::OkStatus();
}

}  // namespace parasol
