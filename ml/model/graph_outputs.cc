#include "ml/model/graph_outputs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/layer/layer.h"
#include "ml/loss/loss_kinds.h"

namespace parasol {
namespace {

constexpr int kMaxOutputs = 64;
constexpr size_t kMaxNameBytes = 64;

double WeightOf(const job::Output& output) {
  return output.has_weight() ? output.weight() : 1;
}

// Names are parts of names of metrics, of gauges and of TensorBoard's tags.
absl::Status CheckName(absl::string_view name) {
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (!name.empty() && name.size() <= kMaxNameBytes &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("name \"", ShownText(name, kMaxNameBytes), "\" is not 1 to ",
                   kMaxNameBytes, " letters, digits, '_'"));
}

absl::Status CheckLabel(const job::Output& output) {
  if (!ReadsLabels(output.loss())) return absl::OkStatus();
  if (output.label().column().empty()) {
    return absl::InvalidArgumentError(
        "label.column is not set: the column of the data sets that has the "
        "output's labels");
  }
  if (!output.label().positive().empty() && !output.label().class_().empty()) {
    return absl::InvalidArgumentError(
        "label: has both positive and class; choose one");
  }
  return absl::OkStatus();
}

// Returns true if the value is an input of the model, in whatever shape.
bool IsInput(const Graph& graph, size_t value) {
  const GraphNode* node = graph.Producer(value);
  while (node != nullptr && node->layer->IsView()) {
    node = graph.Producer(node->inputs[0]);
  }
  return node == nullptr;
}

absl::Status CheckComputed(const Graph& graph, size_t value) {
  if (!IsInput(graph, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("layer \"", graph.Producer(value)->name,
                   "\" only passes an input of the model on"));
}

// Returns the value of the layer whose output it is; nullopt: a layer at fault.
absl::StatusOr<std::optional<size_t>> FindValue(
    const job::Output& output,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, const Graph& graph) {
  const std::string& name = LayerNameOf(output);
  if (unknown.contains(name)) return std::nullopt;
  const auto found = values.find(name);
  if (found != values.end() && graph.Producer(found->second) != nullptr) {
    return found->second;
  }
  std::vector<std::string> layers;
  for (const GraphNode& node : graph.nodes) layers.push_back(node.name);
  return absl::InvalidArgumentError(
      absl::StrCat("layer \"", ShownText(name, kMaxNameBytes),
                   "\" is no layer of the model", DidYouMean(name, layers)));
}

OutputSpec FunctionOutput(const std::string& name, size_t value,
                          const Graph& graph) {
  return {.name = name, .loss = {.outputs = graph.ElementsOfValue(value)}};
}

class OutputResolver {
 public:
  OutputResolver(const job::Model& spec,
                 const absl::flat_hash_map<std::string, size_t>& values,
                 const absl::flat_hash_set<std::string>& unknown, Graph& graph)
      : spec_(spec), values_(values), unknown_(unknown), graph_(graph) {}

  std::optional<std::vector<OutputSpec>> Resolve(Faults& faults) {
    Faults found;
    if (spec_.has_loss()) {
      found.Add(absl::InvalidArgumentError(
          "model.loss: model.output says the losses; remove it"));
    }
    if (!spec_.metric().empty()) {
      found.Add(absl::InvalidArgumentError(
          "model.metric: metrics are those of model.output; remove it"));
    }
    if (spec_.output_size() > kMaxOutputs) {
      found.Add(absl::InvalidArgumentError(absl::StrCat(
          "model.output: ", spec_.output_size(), " of at most ", kMaxOutputs)));
    }
    for (int i = 0; i < std::min(spec_.output_size(), kMaxOutputs); ++i) {
      const job::Output& output = spec_.output(i);
      found.Add(absl::StrCat("model.output[", i, "] \"",
                             ShownText(output.name(), kMaxNameBytes), "\""),
                ResolveOne(output));
    }
    if (found.empty()) found.Add(CheckWeights());
    if (found.empty() && is_known_) found.Add(CheckTraining());
    const bool is_good = found.empty() && is_known_;
    faults.Add(std::move(found));
    if (!is_good) return std::nullopt;
    return std::move(outputs_);
  }

 private:
  absl::Status ResolveOne(const job::Output& output) {
    RETURN_IF_ERROR(CheckName(output.name()));
    if (!names_.insert(output.name()).second) {
      return absl::InvalidArgumentError("an earlier output is called so too");
    }
    const double weight = WeightOf(output);
    if (!(weight >= 0 && std::isfinite(static_cast<float>(weight)))) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight: ", weight, " is not a number from 0"));
    }
    RETURN_IF_ERROR(CheckLabel(output));
    if (output.loss().kind_case() == job::Loss::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          "loss is not set: binary_crossentropy {}");
    }
    ASSIGN_OR_RETURN(const std::optional<size_t> value, ValueOf(output));
    if (!value.has_value()) {
      is_known_ = false;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(
        LossSpec loss,
        ResolveLoss(output.loss(), graph_.ElementsOfValue(*value)));
    graph_.output_values.push_back(*value);
    outputs_.push_back(
        {.name = output.name(), .weight = weight, .loss = std::move(loss)});
    return absl::OkStatus();
  }

  // nullopt: a layer at fault.
  absl::StatusOr<std::optional<size_t>> ValueOf(
      const job::Output& output) const {
    ASSIGN_OR_RETURN(const std::optional<size_t> value,
                     FindValue(output, values_, unknown_, graph_));
    if (!value.has_value()) return std::nullopt;
    const GraphNode& node = *graph_.Producer(*value);
    const absl::Status shape =
        CheckOutputShape(output.loss(), node.layer->output_shape());
    if (!shape.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the output of layer \"", node.name, "\" is ", shape.message()));
    }
    RETURN_IF_ERROR(CheckComputed(graph_, *value));
    return value;
  }

  absl::Status CheckWeights() const {
    const auto& outputs = spec_.output();
    if (std::any_of(outputs.begin(), outputs.end(),
                    [](const auto& output) { return WeightOf(output) > 0; })) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "model.output: all weights are 0: nothing to train");
  }

  // Checks that each layer that is trained has a gradient: a way to an output
  // whose weight is not 0.
  absl::Status CheckTraining() const {
    std::vector<bool> reaches(graph_.num_values(), false);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].weight > 0) reaches[graph_.output_values[i]] = true;
    }
    for (size_t value = graph_.num_values(); value-- > graph_.inputs.size();) {
      const GraphNode& node = *graph_.Producer(value);
      if (reaches[value]) {
        for (const size_t input : node.inputs) reaches[input] = true;
      } else if (IsTrained(node)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "model.layer \"", node.name,
            "\": only outputs with weight 0 read it, so nothing trains it; "
            "give one a weight, or ",
            !node.table
                ? "set the layer's trainable: false"
                : "read the table's rows from a layer that others read"));
      }
    }
    return absl::OkStatus();
  }

  bool IsTrained(const GraphNode& node) const {
    for (size_t i = 0; i < node.layer->variables().size(); ++i) {
      if (!graph_.variables[node.first_variable + i].frozen) return true;
    }
    return node.table && !graph_.tables[*node.table].frozen;
  }

  const job::Model& spec_;
  const absl::flat_hash_map<std::string, size_t>& values_;
  const absl::flat_hash_set<std::string>& unknown_;
  Graph& graph_;
  std::set<std::string> names_;
  std::vector<OutputSpec> outputs_;
  bool is_known_ = true;
};

}  // namespace

const std::string& LayerNameOf(const job::Output& output) {
  return output.layer().empty() ? output.name() : output.layer();
}

std::optional<std::vector<OutputSpec>> ResolveNamedOutputs(
    const job::Model& spec,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, Graph& graph,
    Faults& faults) {
  return OutputResolver(spec, values, unknown, graph).Resolve(faults);
}

std::optional<std::vector<OutputSpec>> ResolveFunctionOutputs(
    const job::Model& spec,
    const absl::flat_hash_map<std::string, size_t>& values,
    const absl::flat_hash_set<std::string>& unknown, Graph& graph,
    Faults& faults) {
  Faults found;
  std::set<std::string> names;
  std::vector<OutputSpec> outputs;
  const auto add = [&](const std::string& name, size_t value) {
    outputs.push_back(FunctionOutput(name, value, graph));
    graph.output_values.push_back(value);
    return CheckComputed(graph, value);
  };
  const auto resolve = [&](const job::Output& output) -> absl::Status {
    RETURN_IF_ERROR(CheckName(output.name()));
    if (!names.insert(output.name()).second) {
      return absl::InvalidArgumentError("an earlier output is called so too");
    }
    ASSIGN_OR_RETURN(const std::optional<size_t> value,
                     FindValue(output, values, unknown, graph));
    return value ? add(output.name(), *value) : absl::OkStatus();
  };
  for (int i = 0; i < spec.output_size(); ++i) {
    found.Add(
        absl::StrCat("model.output[", i, "] \"",
                     ShownText(spec.output(i).name(), kMaxNameBytes), "\""),
        resolve(spec.output(i)));
  }
  if (spec.layer().empty()) {
    found.Add(absl::InvalidArgumentError("model.layer: is empty"));
  } else if (spec.output().empty() && unknown.empty()) {
    found.Add(add("", graph.num_values() - 1));
  }
  const bool is_good = found.empty() && unknown.empty();
  faults.Add(std::move(found));
  if (!is_good) return std::nullopt;
  return outputs;
}

}  // namespace parasol
