#include "ml/model/graph_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kMaxNameLength = 200;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
}

// Exactly one id for each column, unless a column may have none.
int64_t IdsPerExample(const job::IdInput& ids) {
  for (const job::IdColumn& column : ids.column()) {
    if (column.missing() == job::IdColumn::NO_ID) return 0;
  }
  return ids.column_size();
}

absl::StatusOr<LayerInput> ResolveIds(const job::IdInput& ids) {
  LayerInput what = {.kind = LayerInput::Kind::kIds};
  if (!ids.has_sequence()) {
    what.ids_per_example = IdsPerExample(ids);
    return what;
  }
  what.shape = {ids.sequence().length()};
  RETURN_IF_ERROR(CheckGraphShape(what.shape)) << "ids.sequence.length";
  return what;
}

absl::StatusOr<LayerInput> ResolveDense(const job::DenseInput& dense) {
  LayerInput what = {.shape = {dense.shape().begin(), dense.shape().end()}};
  if (what.shape.empty()) {
    if (dense.column().empty()) {
      return absl::InvalidArgumentError("dense.shape: is not set");
    }
    what.shape = {dense.column_size()};
  }
  RETURN_IF_ERROR(CheckGraphShape(what.shape));
  return what;
}

}  // namespace

absl::Status CheckGraphShape(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t axis : shape) {
    if (axis <= 0 || axis > kMaxGraphElements / elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ShapeText(shape),
                       ": axes must be positive and their product at most ",
                       kMaxGraphElements));
    }
    elements *= axis;
  }
  return absl::OkStatus();
}

absl::Status CheckGraphName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a name is 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-', '.', '/'"));
  }
  return absl::OkStatus();
}

// Rows are a table's, which several layers may read.
absl::Status CheckLayerTraining(const job::Layer& layer,
                                absl::string_view table) {
  const double multiplier = layer.learning_rate_multiplier();
  if (!(multiplier > 0 && std::isfinite(multiplier))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learning_rate_multiplier: ", multiplier,
        " is not a number above 0; to keep variables as they are, set "
        "trainable: false"));
  }
  if (table.empty()) return absl::OkStatus();
  absl::string_view field;
  if (layer.has_optimizer()) field = "optimizer";
  if (multiplier != 1) field = "learning_rate_multiplier";
  if (!layer.trainable()) field = "trainable";
  if (field.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field,
      ": the rows that the layer reads are those of model.sparse_table \"",
      table, "\": set it there"));
}

absl::Status CheckLayerOptimizer(const job::Layer& spec, const Layer& layer) {
  if (!spec.has_optimizer()) return absl::OkStatus();
  const auto& variables = layer.variables();
  if (std::any_of(variables.begin(), variables.end(),
                  [](const VariableSpec& v) { return v.trained; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "optimizer: the layer has no variables to train; leave it out");
}

absl::Status CheckL2(double l2) {
  if (l2 >= 0 && std::isfinite(l2)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("an l2 of ", l2, " is not a number from 0"));
}

absl::StatusOr<LayerInput> ResolveModelInput(const job::ModelInput& input) {
  if (input.has_ids()) return ResolveIds(input.ids());
  if (input.has_dense()) return ResolveDense(input.dense());
  return absl::InvalidArgumentError("has no kind: dense, ids");
}

}  // namespace parasol
