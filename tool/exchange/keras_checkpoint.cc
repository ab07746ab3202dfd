#include "tool/exchange/keras_checkpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "storage/tensor_files/tensor_bundle.h"
#include "tool/exchange/tensor_names.h"

namespace parasol {
namespace {

constexpr char kAttribute[] = "VARIABLE_VALUE";
constexpr char kOptimizer[] = "optimizer";

// As TensorFlow writes a local name into a key.
std::string Escaped(absl::string_view name) {
  return absl::StrReplaceAll(name, {{".", ".."}, {"/", ".S"}});
}

// Builds the graph: a root with a model and an optimizer, the model's layers,
// and their variables with slots.
class GraphBuilder {
 public:
  GraphBuilder() {
    root_ = AddNode();
    model_ = AddChild(root_, "model");
    optimizer_ = AddChild(root_, kOptimizer);
  }

  void AddStep() {
    AddVariable(root_, std::string(kGlobalStepName), "", kGlobalStepName);
  }
  void AddIterations(const std::string& name) {
    AddVariable(optimizer_, name, kOptimizer, "iter");
  }

  // Adds a variable of the model and its slots; layers are numbered as they
  // come.
  void AddModelVariable(const durable::CheckpointVariable& variable,
                        const job::Optimizer& optimizer) {
    const std::string& name = variable.name();
    const size_t slash = name.rfind('/');
    const std::string layer =
        slash == std::string::npos ? "" : name.substr(0, slash);
    const std::string leaf =
        slash == std::string::npos ? name : name.substr(slash + 1);
    const auto [node, path] = LayerNode(layer);
    const int value = AddVariable(node, name, path, leaf);
    for (const std::string& slot : variable.slot()) {
      const std::string slot_name = SlotName(optimizer, name, slot);
      const int slot_node = AddNode();
      SetKey(slot_node, slot_name,
             absl::StrCat(path, "/", Escaped(leaf), "/.OPTIMIZER_SLOT/",
                          kOptimizer, "/", Escaped(slot)));
      auto& reference =
          *checkpoint_.graph.mutable_nodes(optimizer_)->add_slot_variables();
      reference.set_original_variable_node_id(value);
      reference.set_slot_name(slot);
      reference.set_slot_variable_node_id(slot_node);
    }
  }

  KerasCheckpoint Take() { return std::move(checkpoint_); }

 private:
  int AddNode() {
    checkpoint_.graph.add_nodes();
    return checkpoint_.graph.nodes_size() - 1;
  }

  int AddChild(int parent, absl::string_view local_name) {
    const int child = AddNode();
    auto& reference = *checkpoint_.graph.mutable_nodes(parent)->add_children();
    reference.set_node_id(child);
    reference.set_local_name(std::string(local_name));
    return child;
  }

  // Adds the variable `name` as the child `leaf` of the node at `path`.
  int AddVariable(int parent, const std::string& name, absl::string_view path,
                  absl::string_view leaf) {
    const int node = AddChild(parent, leaf);
    SetKey(
        node, name,
        path.empty() ? Escaped(leaf) : absl::StrCat(path, "/", Escaped(leaf)));
    return node;
  }

  void SetKey(int node, const std::string& name, absl::string_view path) {
    auto& attribute = *checkpoint_.graph.mutable_nodes(node)->add_attributes();
    attribute.set_name(kAttribute);
    attribute.set_full_name(name);
    attribute.set_checkpoint_key(absl::StrCat(path, kVariableValueSuffix));
    checkpoint_.keys[name] = attribute.checkpoint_key();
  }

  // The node and path of a layer; a variable without one is the model's own.
  std::pair<int, std::string> LayerNode(const std::string& layer) {
    if (layer.empty()) return {model_, "model"};
    const auto [found, is_new] = layers_.try_emplace(layer);
    if (is_new) {
      const std::string local =
          absl::StrCat("layer_with_weights-", layers_.size() - 1);
      found->second = {AddChild(model_, local), absl::StrCat("model/", local)};
    }
    return found->second;
  }

  KerasCheckpoint checkpoint_;
  int root_ = 0;
  int model_ = 0;
  int optimizer_ = 0;
  std::map<std::string, std::pair<int, std::string>> layers_;
};

}  // namespace

KerasCheckpoint KerasCheckpointOf(const durable::CheckpointManifest& manifest) {
  GraphBuilder builder;
  builder.AddStep();
  builder.AddIterations(IterationsName(manifest.job().optimizer()));
  for (const durable::CheckpointVariable& variable : manifest.variable()) {
    builder.AddModelVariable(
        variable, OptimizerOfVariable(variable.name(), manifest.job()));
  }
  return builder.Take();
}

}  // namespace parasol
