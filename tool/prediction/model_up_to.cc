#include "tool/prediction/model_up_to.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/status_macros.h"
#include "ml/layer/kinds/layer_kinds.h"
#include "ml/model/graph.h"
#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

// The name of the input of a model that has just one and does not name it.
constexpr char kOnlyInput[] = "input";

absl::StatusOr<int> PositionOf(const job::Model& model,
                               const std::string& name) {
  std::vector<std::string> names;
  for (int i = 0; i < model.layer_size(); ++i) {
    if (model.layer(i).name() == name) return i;
    names.push_back(model.layer(i).name());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--layer=", name, ": the model has no such layer, but ",
                   absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

// The layer with the names of all that it reads.
job::Layer WithInputs(const job::Model& model, int position) {
  job::Layer layer = model.layer(position);
  if (!layer.input().empty()) return layer;
  if (position > 0) {
    layer.add_input(model.layer(position - 1).name());
  } else {
    layer.add_input(model.input().empty() ? kOnlyInput : model.input(0).name());
  }
  return layer;
}

}  // namespace

absl::StatusOr<job::Model> ModelUpTo(const job::Model& model,
                                     const std::string& name) {
  ASSIGN_OR_RETURN(const int last, PositionOf(model, name));
  std::set<std::string> wanted = {name};
  std::set<std::string> tables;
  std::vector<job::Layer> layers;  // the last one first
  for (int i = last; i >= 0; --i) {
    if (!wanted.contains(model.layer(i).name())) continue;
    layers.push_back(WithInputs(model, i));
    wanted.insert(layers.back().input().begin(), layers.back().input().end());
    const LayerKind* const kind = KindOf(model.layer(i));
    if (kind != nullptr && kind->table != nullptr) {
      tables.insert(kind->table(model.layer(i)));
    }
  }
  job::Model part;
  *part.mutable_input_shape() = model.input_shape();
  for (const job::ModelInput& input : model.input()) {
    if (wanted.contains(input.name()) ||
        wanted.contains(MaskNameOf(input.name()))) {
      *part.add_input() = input;
    }
  }
  for (const job::SparseTable& table : model.sparse_table()) {
    if (tables.contains(table.name())) *part.add_sparse_table() = table;
  }
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    *part.add_layer() = *layer;
  }
  // The flatten layer makes one vector of any output, and leaves a vector as it
  // is.
  job::Layer& flat = *part.add_layer();
  flat.set_name(absl::StrCat(name, ".flat"));
  flat.mutable_flatten();
  part.mutable_loss()->mutable_mean_squared_error();
  return part;
}

}  // namespace parasol
