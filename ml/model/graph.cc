#include "ml/model/graph.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/did_you_mean.h"
#include "base/status_macros.h"
#include "ml/layer/kinds/layer_kinds.h"
#include "ml/layer/sequence/sequence_mask.h"
#include "ml/model/graph_checks.h"
#include "ml/model/graph_faults.h"
#include "ml/model/graph_inputs.h"
#include "ml/model/graph_outputs.h"

namespace parasol {
namespace {

constexpr int kMaxLayers = 1000;
constexpr int kMaxInputs = 1000;
constexpr char kOnlyInput[] = "input";

std::string NameOf(const job::Layer& layer, int position) {
  if (!layer.name().empty()) return layer.name();
  return absl::StrCat(KindNameOf(layer), "_", position);
}

absl::string_view TableOf(const job::Layer& layer) {
  const LayerKind& kind = *KindOf(layer);
  return kind.table == nullptr ? "" : absl::string_view(kind.table(layer));
}

// Follows the shapes of one example through the layers. Goes on behind a fault.
class Resolver {
 public:
  Resolver(const job::Model& spec, const std::set<int>& faulty, GraphUse use,
           Faults& faults)
      : spec_(spec), faulty_(faulty), use_(use), faults_(faults) {}

  CheckedGraph Resolve() {
    ResolveTables();
    ResolveInputs();
    if (spec_.layer_size() > kMaxLayers) {
      faults_.Add(absl::InvalidArgumentError(absl::StrCat(
          "model.layer: ", spec_.layer_size(), " of at most ", kMaxLayers)));
      return {};
    }
    for (int i = 0; i < spec_.layer_size(); ++i) {
      const absl::Status status = ResolveLayer(i);
      faults_.Add(PathOf(i), status);
      last_is_unknown_ = !status.ok() || reads_unknown_;
      if (last_is_unknown_) unknown_.insert(NameOf(spec_.layer(i), i));
    }
    for (const job::Output& output : spec_.output()) UseOf(output);
    if (uses_are_known_) CheckUse();
    CheckedGraph checked;
    if (use_ == GraphUse::kFunction) {
      checked.outputs =
          ResolveFunctionOutputs(spec_, values_, unknown_, graph_, faults_);
    } else {
      if (unknown_.empty()) faults_.Add(CheckTrained());
      checked.outputs = ResolvedOutputs();
    }
    if (!faults_.empty() || !unknown_.empty()) return checked;
    graph_.outputs = *checked.outputs;
    checked.graph = std::move(graph_);
    return checked;
  }

 private:
  std::string PathOf(int layer) const {
    return absl::StrCat("model.layer[", layer, "] \"",
                        NameOf(spec_.layer(layer), layer), "\"");
  }

  void ResolveTables() {
    for (const job::SparseTable& table : spec_.sparse_table()) {
      tables_.emplace(table.name(), graph_.tables.size());
      graph_.tables.push_back({.name = table.name(), .width = table.width()});
      graph_.tables.back().frozen = !table.trainable();
      graph_.tables.back().counts = table.has_admission();
    }
  }

  void ResolveInputs() {
    if (spec_.input().empty()) {
      const absl::Status status = ResolveInputShape();
      faults_.Add("model.input_shape", status);
      if (!status.ok()) unknown_.insert(kOnlyInput);
      return;
    }
    if (!spec_.input_shape().empty()) {
      faults_.Add(absl::InvalidArgumentError(
          "model.input_shape: model.input says what the model reads"));
    }
    if (spec_.input_size() > kMaxInputs) {
      faults_.Add(absl::InvalidArgumentError(absl::StrCat(
          "model.input: ", spec_.input_size(), " of at most ", kMaxInputs)));
    }
    const int checked = std::min(spec_.input_size(), kMaxInputs);
    for (int i = 0; i < checked; ++i) {
      const absl::Status status = ResolveInput(spec_.input(i));
      const std::string& name = spec_.input(i).name();
      faults_.Add(absl::StrCat("model.input[", i, "] \"", name, "\""), status);
      if (!status.ok()) unknown_.insert(name);
    }
  }

  absl::Status ResolveInputShape() {
    if (spec_.input_shape().empty()) {
      return absl::InvalidArgumentError("is not set");
    }
    const Shape shape(spec_.input_shape().begin(), spec_.input_shape().end());
    RETURN_IF_ERROR(CheckGraphShape(shape));
    return AddInput(kOnlyInput, {.shape = shape});
  }

  absl::Status ResolveInput(const job::ModelInput& input) {
    RETURN_IF_ERROR(CheckGraphName(input.name()));
    ASSIGN_OR_RETURN(LayerInput what, ResolveModelInput(input));
    return AddInput(input.name(), std::move(what));
  }

  absl::Status AddInput(const std::string& name, LayerInput what) {
    if (!values_.emplace(name, graph_.inputs.size()).second) {
      return absl::InvalidArgumentError("an earlier input is called so too");
    }
    size_t& next = what.kind == LayerInput::Kind::kIds ? ids_ : dense_;
    graph_.inputs.push_back(
        {.name = name, .what = std::move(what), .index = next++});
    for (const auto& [other, value] : values_) {
      RETURN_IF_ERROR(CheckNotMask(other));
    }
    return absl::OkStatus();
  }

  // Checks that a name is not the name of a sequence's mask.
  absl::Status CheckNotMask(const std::string& name) const {
    const std::optional<size_t> sequence = SequenceOfMask(graph_, name);
    if (!sequence) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is the name of the mask of input \"",
                     graph_.inputs[*sequence].name, "\"; choose another one"));
  }

  absl::Status ResolveLayer(int position) {
    reads_unknown_ = faulty_.contains(position);
    if (KindOf(spec_.layer(position)) == nullptr) {
      uses_are_known_ = false;
      if (reads_unknown_) return absl::OkStatus();
      return absl::InvalidArgumentError("has no kind: dense, activation, …");
    }
    job::Layer layer = spec_.layer(position);
    layer.set_name(NameOf(layer, position));
    RETURN_IF_ERROR(CheckGraphName(layer.name()));
    RETURN_IF_ERROR(CheckNotMask(layer.name()));
    ASSIGN_OR_RETURN(std::vector<size_t> inputs, InputsOf(layer, position));
    if (values_.contains(layer.name()) || unknown_.contains(layer.name())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "an earlier layer or input is called ", layer.name(), " too"));
    }
    if (reads_unknown_) return absl::OkStatus();
    RETURN_IF_ERROR(AddNode(layer, std::move(inputs)));
    values_.emplace(layer.name(), graph_.num_values() - 1);
    position_of_node_.push_back(position);
    return absl::OkStatus();
  }

  // The values that a layer reads, as far as they are known; sets
  // reads_unknown_ if one is not.
  absl::StatusOr<std::vector<size_t>> InputsOf(const job::Layer& layer,
                                               int position) {
    std::vector<size_t> inputs;
    Faults unnamed;
    for (const std::string& name : layer.input()) {
      const absl::StatusOr<std::optional<size_t>> value = Named(name, position);
      unnamed.Add(value.status());
      if (!value.ok()) continue;
      reads_unknown_ |= !value->has_value();
      if (value->has_value()) inputs.push_back(**value);
    }
    if (!layer.input().empty()) {
      // All but the last, which the caller adds.
      for (size_t i = 0; i + 1 < unnamed.all().size(); ++i) {
        faults_.Add(PathOf(position), unnamed.all()[i]);
      }
    } else if (position > 0) {
      reads_unknown_ |= last_is_unknown_;
      if (!last_is_unknown_) inputs.push_back(graph_.num_values() - 1);
    } else if (spec_.input_size() <= 1) {
      reads_unknown_ |= graph_.inputs.empty();
      if (!graph_.inputs.empty()) inputs.push_back(0);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("input: is not set, and the model has ",
                       spec_.input_size(), " inputs"));
    }
    used_.insert(inputs.begin(), inputs.end());
    if (!unnamed.empty()) return unnamed.all().back();
    return inputs;
  }

  // nullopt: the name of an input or a layer at fault.
  absl::StatusOr<std::optional<size_t>> Named(const std::string& name,
                                              int position) {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second;
    if (unknown_.contains(name)) return std::nullopt;
    if (unknown_.contains(absl::StripSuffix(name, kMaskSuffix))) {
      return std::nullopt;
    }
    if (const std::optional<size_t> sequence = SequenceOfMask(graph_, name)) {
      return MaskOf(*sequence, position);
    }
    for (int i = 0; i < position; ++i) {
      // A layer without a name is called after its kind.
      const job::Layer& layer = spec_.layer(i);
      const bool may_be_it = KindOf(layer) == nullptr &&
                             absl::EndsWith(name, absl::StrCat("_", i));
      if (may_be_it) return std::nullopt;
    }
    for (int i = position; i < spec_.layer_size(); ++i) {
      if (NameOf(spec_.layer(i), i) != name) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("input \"", name, "\" is ",
                       i == position ? "the layer itself" : "a later layer"));
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "input \"", name,
        "\" is neither a layer before it nor an input of the model",
        Meant(name, position)));
  }

  // The mask of an input, which the layer at `position` is the first to read.
  absl::StatusOr<std::optional<size_t>> MaskOf(size_t sequence, int position) {
    ASSIGN_OR_RETURN(const size_t mask, AddSequenceMask(sequence, graph_));
    values_.emplace(graph_.nodes.back().name, mask);
    position_of_node_.push_back(position);
    used_.insert(sequence);
    return mask;
  }

  // The end of the error about a name; what is meant counts as read.
  std::string Meant(const std::string& name, int position) {
    std::vector<std::string> names;
    for (const job::ModelInput& input : spec_.input()) {
      names.push_back(input.name());
    }
    if (spec_.input().empty()) names.push_back(kOnlyInput);
    for (const GraphInput& input : graph_.inputs) {
      const std::string mask = MaskNameOf(input.name);
      if (SequenceOfMask(graph_, mask)) names.push_back(mask);
    }
    for (int i = 0; i < position; ++i) {
      names.push_back(NameOf(spec_.layer(i), i));
    }
    const auto meant = values_.find(NearestName(name, names));
    if (meant != values_.end()) used_.insert(meant->second);
    uses_are_known_ &= meant != values_.end();
    return DidYouMean(name, names);
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
                      .first_variable = graph_.variables.size(),
                      .table = table};
    RETURN_IF_ERROR(CheckLayerTraining(spec, TableOf(spec)));
    ASSIGN_OR_RETURN(node.layer, MakeLayer(spec, shapes, width));
    RETURN_IF_ERROR(CheckGraphShape(node.layer->output_shape())) << "output";
    RETURN_IF_ERROR(CheckLayerOptimizer(spec, *node.layer));
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
      RETURN_IF_ERROR(CheckGraphShape(row)) << "rows of " << name;
      return found->second;
    }
    std::vector<std::string> names;
    for (const GraphTable& table : graph_.tables) names.push_back(table.name);
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", name, "\" is not in model.sparse_table",
                     DidYouMean(name, names)));
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

  absl::Status AddVariables(const job::Layer& spec, const GraphNode& node) {
    const Layer& layer = *node.layer;
    for (size_t i = 0; i < layer.variables().size(); ++i) {
      VariableSpec variable = layer.variables()[i];
      variable.learning_rate_multiplier = spec.learning_rate_multiplier();
      if (!spec.trainable()) {
        variable.trained = false;
        variable.frozen = true;
      }
      RETURN_IF_ERROR(CheckGraphShape(variable.shape)) << variable.name;
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

  void UseOf(const job::Output& output) {
    const auto value = values_.find(LayerNameOf(output));
    if (value == values_.end()) {
      uses_are_known_ = false;
    } else {
      used_.insert(value->second);
    }
  }

  // Checks that every value is read. An unread one would be computed, or sent,
  // for nothing, and is a mistake in the job file.
  void CheckUse() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (used_.contains(i) || spec_.layer().empty()) continue;
      faults_.Add(absl::InvalidArgumentError(absl::StrCat(
          "model.input[", PositionOf(graph_.inputs[i].name), "] \"",
          graph_.inputs[i].name, "\": no layer reads it")));
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (used_.contains(graph_.inputs.size() + i)) continue;
      const bool is_last = position_of_node_[i] + 1 == spec_.layer_size();
      if (is_last && spec_.output().empty()) continue;
      faults_.Add(absl::InvalidArgumentError(absl::StrCat(
          PathOf(position_of_node_[i]), ": no layer reads its output",
          spec_.output().empty() ? "" : ", and it is none of model.output")));
    }
  }

  int PositionOf(const std::string& input) const {
    for (int i = 0; i < spec_.input_size(); ++i) {
      if (spec_.input(i).name() == input) return i;
    }
    return 0;
  }

  absl::Status CheckTrained() const {
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
    if (!spec_.output().empty()) return absl::OkStatus();
    const absl::Status shape = CheckOutputShape(
        spec_.loss(), graph_.nodes.back().layer->output_shape());
    if (!shape.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(PathOf(spec_.layer_size() - 1), ": the last output is ",
                       shape.message()));
    }
    if (spec_.loss().kind_case() == job::Loss::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          "model.loss is not set: sparse_categorical_crossentropy {}");
    }
    return absl::OkStatus();
  }

  std::optional<std::vector<OutputSpec>> ResolvedOutputs() {
    if (!spec_.output().empty()) {
      return ResolveNamedOutputs(spec_, values_, unknown_, graph_, faults_);
    }
    const int64_t outputs = Outputs();
    if (outputs == 0 || spec_.loss().kind_case() == job::Loss::KIND_NOT_SET) {
      return std::nullopt;
    }
    absl::StatusOr<LossSpec> loss = ResolveLoss(spec_.loss(), outputs);
    if (loss.ok()) {
      graph_.output_values = {graph_.num_values() - 1};
      return std::vector<OutputSpec>{{.loss = *std::move(loss)}};
    }
    faults_.Add(absl::InvalidArgumentError(
        absl::StrCat("model.", loss.status().message())));
    return std::nullopt;
  }

  // Number of the model's outputs; 0: unknown.
  int64_t Outputs() const {
    if (spec_.layer().empty()) return 0;
    if (!last_is_unknown_) {
      const Shape& shape = graph_.nodes.back().layer->output_shape();
      return CheckOutputShape(spec_.loss(), shape).ok() ? ElementsOf(shape) : 0;
    }
    const job::Layer& last = spec_.layer(spec_.layer_size() - 1);
    return std::clamp<int64_t>(last.dense().units(), 0, kMaxGraphElements);
  }

  const job::Model& spec_;
  const std::set<int>& faulty_;
  const GraphUse use_;
  Faults& faults_;
  Graph graph_;
  size_t dense_ = 0, ids_ = 0;  // inputs of each kind
  // Names of the inputs and layers whose shapes a fault keeps unknown.
  absl::flat_hash_set<std::string> unknown_;
  bool last_is_unknown_ = false;  // the layer before
  bool reads_unknown_ = false;    // the present layer
  // False if a name may mean any of the values.
  bool uses_are_known_ = true;
  std::vector<int> position_of_node_;  // in the spec
  absl::flat_hash_map<std::string, size_t> tables_;
  // The first layer that reads each table.
  absl::flat_hash_map<std::string, std::string> readers_;
  // Numbers of values by the name of the input or layer.
  absl::flat_hash_map<std::string, size_t> values_;
  absl::flat_hash_set<std::string> variables_;  // names
  absl::flat_hash_set<size_t> used_;
};

}  // namespace

int64_t Graph::output_width() const {
  int64_t width = 0;
  for (const OutputSpec& output : outputs) width += output.loss.outputs;
  return width;
}

absl::StatusOr<Graph> ResolveGraph(const job::Model& spec) {
  Faults faults;
  CheckedGraph checked = CheckGraph(spec, /*faulty=*/{}, faults);
  RETURN_IF_ERROR(faults.first());
  return *std::move(checked.graph);
}

CheckedGraph CheckGraph(const job::Model& spec, const std::set<int>& faulty,
                        Faults& faults, GraphUse use) {
  Faults found;
  CheckedGraph checked = Resolver(spec, faulty, use, found).Resolve();
  faults.Add(std::move(found));
  return checked;
}

}  // namespace parasol
