#include "ml/model/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/layer/kinds/layer_kinds.h"

namespace parasol {
namespace {

// Largest number of elements of one variable, and of one example between two
// layers: cuBLAS counts in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();
constexpr int kMaxLayers = 1000;
constexpr int kMaxInputs = 1000;
constexpr size_t kMaxNameLength = 200;
constexpr char kOnlyInput[] = "input";

// Checks that all axes of `shape` are positive and their product is not too
// large.
absl::Status CheckShape(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t axis : shape) {
    if (axis <= 0 || axis > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(shape, ", "),
          "]: axes must be positive and their product at most ", kMaxElements));
    }
    elements *= axis;
  }
  return absl::OkStatus();
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
}

absl::Status CheckName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name is 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-', '.', '/'"));
  }
  return absl::OkStatus();
}

std::string NameOf(const job::Layer& layer, int position) {
  if (!layer.name().empty()) return layer.name();
  return absl::StrCat(KindNameOf(layer), "_", position);
}

absl::string_view TableOf(const job::Layer& layer) {
  const LayerKind& kind = *KindOf(layer);
  return kind.table == nullptr ? "" : absl::string_view(kind.table(layer));
}

// Exactly one id for each column, unless a column may have none.
int64_t IdsPerExample(const job::IdInput& ids) {
  for (const job::IdColumn& column : ids.column()) {
    if (column.missing() == job::IdColumn::NO_ID) return 0;
  }
  return ids.column_size();
}

absl::StatusOr<Shape> ShapeOf(const job::DenseInput& dense) {
  Shape shape(dense.shape().begin(), dense.shape().end());
  if (shape.empty()) {
    if (dense.column().empty()) {
      return absl::InvalidArgumentError("dense.shape: is not set");
    }
    shape = {dense.column_size()};
  }
  RETURN_IF_ERROR(CheckShape(shape));
  return shape;
}

// Follows the shapes of one example through the layers.
class Resolver {
 public:
  explicit Resolver(const job::Model& spec) : spec_(spec) {}

  absl::StatusOr<Graph> Resolve() {
    RETURN_IF_ERROR(ResolveTables());
    RETURN_IF_ERROR(ResolveInputs());
    if (spec_.layer_size() > kMaxLayers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.layer: ", spec_.layer_size(), " of at most ", kMaxLayers));
    }
    for (int i = 0; i < spec_.layer_size(); ++i) {
      RETURN_IF_ERROR(ResolveLayer(i)) << PathOf(i);
    }
    RETURN_IF_ERROR(CheckUse());
    RETURN_IF_ERROR(CheckOutput());
    RETURN_IF_ERROR(SetLoss());
    return std::move(graph_);
  }

 private:
  std::string PathOf(int layer) const {
    return absl::StrCat("model.layer[", layer, "] \"",
                        NameOf(spec_.layer(layer), layer), "\"");
  }

  absl::Status ResolveTables() {
    for (const job::SparseTable& table : spec_.sparse_table()) {
      graph_.tables.push_back({.name = table.name(),
                               .width = table.width(),
                               .frozen = !table.trainable()});
      tables_.emplace(table.name(), graph_.tables.size() - 1);
    }
    return absl::OkStatus();
  }

  absl::Status ResolveInputs() {
    if (spec_.input().empty()) {
      RETURN_IF_ERROR(ResolveInputShape()) << "model.input_shape";
      return absl::OkStatus();
    }
    if (!spec_.input_shape().empty()) {
      return absl::InvalidArgumentError(
          "model.input_shape: model.input says what the model reads");
    }
    if (spec_.input_size() > kMaxInputs) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.input: ", spec_.input_size(), " of at most ", kMaxInputs));
    }
    for (int i = 0; i < spec_.input_size(); ++i) {
      RETURN_IF_ERROR(ResolveInput(spec_.input(i)))
          << "model.input[" << i << "] \"" << spec_.input(i).name() << "\"";
    }
    return absl::OkStatus();
  }

  absl::Status ResolveInputShape() {
    if (spec_.input_shape().empty()) {
      return absl::InvalidArgumentError("is not set");
    }
    const Shape shape(spec_.input_shape().begin(), spec_.input_shape().end());
    RETURN_IF_ERROR(CheckShape(shape));
    return AddInput(kOnlyInput, {.shape = shape});
  }

  absl::Status ResolveInput(const job::ModelInput& input) {
    RETURN_IF_ERROR(CheckName(input.name()));
    LayerInput what;
    if (input.has_ids()) {
      what.kind = LayerInput::Kind::kIds;
      what.ids_per_example = IdsPerExample(input.ids());
    } else if (input.has_dense()) {
      ASSIGN_OR_RETURN(what.shape, ShapeOf(input.dense()));
    } else {
      return absl::InvalidArgumentError("has no kind: dense, ids");
    }
    return AddInput(input.name(), std::move(what));
  }

  absl::Status AddInput(const std::string& name, LayerInput what) {
    if (!values_.emplace(name, graph_.inputs.size()).second) {
      return absl::InvalidArgumentError("an earlier input is called so too");
    }
    size_t& next = what.kind == LayerInput::Kind::kIds ? ids_ : dense_;
    graph_.inputs.push_back(
        {.name = name, .what = std::move(what), .index = next++});
    return absl::OkStatus();
  }

  absl::Status ResolveLayer(int position) {
    if (KindOf(spec_.layer(position)) == nullptr) {
      return absl::InvalidArgumentError("has no kind: dense, activation, …");
    }
    job::Layer layer = spec_.layer(position);
    layer.set_name(NameOf(layer, position));
    RETURN_IF_ERROR(CheckName(layer.name()));
    ASSIGN_OR_RETURN(std::vector<size_t> inputs, InputsOf(layer, position));
    if (!values_.emplace(layer.name(), graph_.num_values()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an earlier layer or input is called ", layer.name(), " too"));
    }
    return AddNode(layer, std::move(inputs));
  }

  absl::StatusOr<std::vector<size_t>> InputsOf(const job::Layer& layer,
                                               int position) {
    std::vector<size_t> inputs;
    for (const std::string& name : layer.input()) {
      ASSIGN_OR_RETURN(const size_t value, Named(name, position));
      inputs.push_back(value);
    }
    if (inputs.empty() && position > 0) {
      inputs.push_back(graph_.num_values() - 1);
    } else if (inputs.empty() && graph_.inputs.size() == 1) {
      inputs.push_back(0);
    } else if (inputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input: is not set, and the model has ",
                       graph_.inputs.size(), " inputs"));
    }
    used_.insert(inputs.begin(), inputs.end());
    return inputs;
  }

  absl::StatusOr<size_t> Named(const std::string& name, int position) const {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    for (int i = position; i < spec_.layer_size(); ++i) {
      if (NameOf(spec_.layer(i), i) != name) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", name, "\" is ",
                       i == position ? "the layer itself" : "a later layer"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "input \"", name,
        "\" is neither a layer before it nor an input of the model"));
  }

  absl::Status AddNode(const job::Layer& spec, std::vector<size_t> inputs) {
    std::vector<LayerInput> shapes;
    for (const size_t value : inputs) {
      const GraphNode* node = graph_.Producer(value);
      shapes.push_back(node == nullptr
                           ? graph_.inputs[value].what
                           : LayerInput{.shape = node->layer->output_shape()});
    }
    ASSIGN_OR_RETURN(const std::optional<size_t> table, FindTable(spec));
    const int64_t width = table ? graph_.tables[*table].width : 0;
    GraphNode node = {.name = spec.name(),
                      .inputs = std::move(inputs),
                      .first_variable = graph_.variables.size()};
    RETURN_IF_ERROR(CheckTraining(spec));
    ASSIGN_OR_RETURN(node.layer, MakeLayer(spec, shapes, width));
    RETURN_IF_ERROR(CheckShape(node.layer->output_shape())) << "output";
    if (table) {
      RETURN_IF_ERROR(Read(graph_.tables[*table], node));
    }
    RETURN_IF_ERROR(AddVariables(spec, node));
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<size_t>> FindTable(
      const job::Layer& layer) const {
    const absl::string_view name = TableOf(layer);
    if (name.empty()) return std::nullopt;
    const auto found = tables_.find(name);
    if (found != tables_.end()) {
      const Shape row = {graph_.tables[found->second].width};
      RETURN_IF_ERROR(CheckShape(row)) << "rows of " << name;
      return found->second;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", name, "\" is not in model.sparse_table"));
  }

  absl::Status Read(GraphTable& table, const GraphNode& node) {
    RETURN_IF_ERROR(CheckL2(node.layer->row_l2()));
    const auto [reader, is_first] = readers_.emplace(table.name, node.name);
    const double l2 = table.frozen ? 0 : node.layer->row_l2();
    if (is_first) table.l2 = l2;
    if (table.l2 != l2) {
      return absl::InvalidArgumentError(absl::StrCat(
          "l2 of table \"", table.name, "\" is ", node.layer->row_l2(),
          ", in layer \"", reader->second, "\" it is ", table.l2,
          ": a row is counted once, so all layers that read it must agree"));
    }
    for (const size_t value : node.inputs) {
      if (value >= graph_.inputs.size()) continue;
      GraphInput& input = graph_.inputs[value];
      if (input.what.kind != LayerInput::Kind::kIds) continue;
      input.needs_each_column |= node.layer->NeedsEveryId();
      const auto place = std::lower_bound(table.id_inputs.begin(),
                                          table.id_inputs.end(), input.index);
      if (place == table.id_inputs.end() || *place != input.index) {
        table.id_inputs.insert(place, input.index);
      }
    }
    return absl::OkStatus();
  }

  // Rows are a table's, which several layers may read.
  static absl::Status CheckTraining(const job::Layer& spec) {
    const double multiplier = spec.learning_rate_multiplier();
    if (!(multiplier > 0 && std::isfinite(multiplier))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "learning_rate_multiplier: ", multiplier,
          " is not a number above 0; to keep variables as they are, set "
          "trainable: false"));
    }
    const absl::string_view table = TableOf(spec);
    if (table.empty() || (spec.trainable() && multiplier == 1)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        spec.trainable() ? "learning_rate_multiplier" : "trainable",
        ": the rows that the layer reads are those of model.sparse_table \"",
        table, "\": set it there"));
  }

  absl::Status AddVariables(const job::Layer& spec, const GraphNode& node) {
    const Layer& layer = *node.layer;
    for (size_t i = 0; i < layer.variables().size(); ++i) {
      VariableSpec variable = layer.variables()[i];
      variable.learning_rate_multiplier = spec.learning_rate_multiplier();
      if (!spec.trainable()) {
        variable.trained = false;
        variable.frozen = true;
      }
      RETURN_IF_ERROR(CheckShape(variable.shape)) << variable.name;
      RETURN_IF_ERROR(CheckL2(layer.variable_l2()[i])) << variable.name;
      variable.name = absl::StrCat(node.name, "/", variable.name);
      if (!variables_.insert(variable.name).second) {
        return absl::InvalidArgumentError(absl::StrCat(
            "an earlier variable is called ", variable.name, " too"));
      }
      graph_.variable_l2.push_back(variable.frozen ? 0
                                                   : layer.variable_l2()[i]);
      graph_.variables.push_back(std::move(variable));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckL2(double l2) {
    if (l2 >= 0 && std::isfinite(l2)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("an l2 of ", l2, " is not a number from 0"));
  }

  // Checks that every value is read. An unread one would be computed, or sent,
  // for nothing, and is a mistake in the job file.
  absl::Status CheckUse() const {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (used_.contains(i) || spec_.layer().empty()) continue;
      return absl::InvalidArgumentError(absl::StrCat("model.input[", i, "] \"",
                                                     graph_.inputs[i].name,
                                                     "\": no layer reads it"));
    }
    for (size_t i = 0; i + 1 < graph_.nodes.size(); ++i) {
      if (used_.contains(graph_.inputs.size() + i)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(PathOf(i), ": no layer reads its output"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOutput() const {
    const bool is_trained =
        std::any_of(graph_.variables.begin(), graph_.variables.end(),
                    [](const VariableSpec& v) { return v.trained; }) ||
        std::any_of(graph_.tables.begin(), graph_.tables.end(),
                    [](const GraphTable& t) {
                      return !t.id_inputs.empty() && !t.frozen;
                    });
    if (!is_trained) {
      return absl::InvalidArgumentError(
          "model has no layer with variables, or none is trainable: nothing to "
          "train");
    }
    const Shape& shape = graph_.nodes.back().layer->output_shape();
    if (shape.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          PathOf(spec_.layer_size() - 1), ": the last output is [",
          absl::StrJoin(shape, ", "), "], not one number per class"));
    }
    if (spec_.loss().kind_case() == job::Loss::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          "model.loss is not set: sparse_categorical_crossentropy {}");
    }
    return absl::OkStatus();
  }

  absl::Status SetLoss() {
    const absl::StatusOr<LossSpec> loss =
        ResolveLoss(spec_.loss(), graph_.outputs());
    if (!loss.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.", loss.status().message()));
    }
    graph_.loss = *loss;
    return absl::OkStatus();
  }

  const job::Model& spec_;
  Graph graph_;
  size_t dense_ = 0, ids_ = 0;  // inputs of each kind
  absl::flat_hash_map<std::string, size_t> tables_;
  // The first layer that reads each table.
  absl::flat_hash_map<std::string, std::string> readers_;
  // Numbers of values by the name of the input or layer.
  absl::flat_hash_map<std::string, size_t> values_;
  absl::flat_hash_set<std::string> variables_;  // names
  absl::flat_hash_set<size_t> used_;
};

}  // namespace

int64_t Graph::ElementsOfValue(size_t value) const {
  const GraphNode* node = Producer(value);
  if (node != nullptr) return parasol::ElementsOf(node->layer->output_shape());
  const LayerInput& what = inputs[value].what;
  return what.kind == LayerInput::Kind::kIds ? 0
                                             : parasol::ElementsOf(what.shape);
}

absl::StatusOr<Graph> ResolveGraph(const job::Model& spec) {
  return Resolver(spec).Resolve();
}

}  // namespace parasol
