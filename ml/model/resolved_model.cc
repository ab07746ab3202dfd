#include "ml/model/resolved_model.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Of one variable and of one example between two layers: cuBLAS counts in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();
constexpr int kMaxLayers = 1000;
constexpr size_t kMaxNameLength = 200;

// Elements of `shape`, all of whose axes must be positive.
absl::StatusOr<int64_t> CountElements(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (int64_t axis : shape) {
    if (axis <= 0 || axis > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape [", absl::StrJoin(shape, ", "),
          "]: axes must be positive and their product at most ", kMaxElements));
    }
    elements *= axis;
  }
  return elements;
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/';
}

absl::StatusOr<ResolvedLayer::Kind> KindOf(const job::Layer& layer) {
  switch (layer.kind_case()) {
    case job::Layer::kDense:
      return ResolvedLayer::Kind::kDense;
    case job::Layer::kActivation:
      return ResolvedLayer::Kind::kActivation;
    case job::Layer::kFlatten:
      return ResolvedLayer::Kind::kFlatten;
    default:
      break;
  }
  return absl::InvalidArgumentError("has no kind: dense, activation, flatten");
}

absl::string_view KindName(ResolvedLayer::Kind kind) {
  switch (kind) {
    case ResolvedLayer::Kind::kDense:
      return "dense";
    case ResolvedLayer::Kind::kActivation:
      return "activation";
    case ResolvedLayer::Kind::kFlatten:
      return "flatten";
  }
  return "layer";
}

// Follows the shape of one example through the layers, collecting variables.
class Resolver {
 public:
  explicit Resolver(const job::Model& spec) : spec_(spec) {}

  absl::StatusOr<ResolvedModel> Resolve() {
    RETURN_IF_ERROR(ResolveInput()) << "model.input_shape";
    for (int i = 0; i < spec_.layer_size(); ++i) {
      RETURN_IF_ERROR(ResolveLayer(i))
          << "model.layer[" << i << "] \"" << spec_.layer(i).name() << "\"";
    }
    RETURN_IF_ERROR(CheckOutput());
    return std::move(model_);
  }

 private:
  absl::Status ResolveInput() {
    if (spec_.input_shape().empty()) {
      return absl::InvalidArgumentError("is not set");
    }
    shape_.assign(spec_.input_shape().begin(), spec_.input_shape().end());
    ASSIGN_OR_RETURN(elements_, CountElements(shape_));
    model_.example_shape = shape_;
    if (spec_.layer_size() > kMaxLayers) {
      return absl::InvalidArgumentError(absl::StrCat(
          spec_.layer_size(), " layers follow, more than ", kMaxLayers));
    }
    return absl::OkStatus();
  }

  absl::Status ResolveLayer(int position) {
    const job::Layer& layer = spec_.layer(position);
    ResolvedLayer resolved;
    ASSIGN_OR_RETURN(resolved.kind, KindOf(layer));
    resolved.name = layer.name().empty()
                        ? absl::StrCat(KindName(resolved.kind), "_", position)
                        : layer.name();
    RETURN_IF_ERROR(ClaimName(resolved.name));
    resolved.inputs = elements_;
    resolved.first_variable = model_.variables.size();
    switch (resolved.kind) {
      case ResolvedLayer::Kind::kDense:
        RETURN_IF_ERROR(ResolveDense(layer.dense(), resolved));
        break;
      case ResolvedLayer::Kind::kActivation:
        resolved.activation = layer.activation();
        break;
      case ResolvedLayer::Kind::kFlatten:
        shape_ = {elements_};
        break;
    }
    resolved.outputs = elements_;
    model_.layers.push_back(std::move(resolved));
    return absl::OkStatus();
  }

  absl::Status ClaimName(const std::string& name) {
    if (name.size() > kMaxNameLength ||
        !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name is at most ", kMaxNameLength,
                       " letters, digits, '_', '-', '.', '/'"));
    }
    if (!names_.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("an earlier layer is called ", name, " too"));
    }
    return absl::OkStatus();
  }

  absl::Status ResolveDense(const job::Dense& dense, ResolvedLayer& resolved) {
    if (shape_.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dense needs a flat input, not [", absl::StrJoin(shape_, ", "),
          "]: put flatten {} before"));
    }
    if (dense.units() <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dense.units is ", dense.units(), ", not positive"));
    }
    resolved.activation = dense.activation();
    resolved.has_bias = !dense.has_use_bias() || dense.use_bias();
    VariableSpec kernel = {.name = resolved.name + "/kernel",
                           .shape = {elements_, dense.units()},
                           .initializer = dense.kernel_initializer()};
    RETURN_IF_ERROR(CountElements(kernel.shape).status()) << "kernel";
    if (kernel.initializer.kind_case() == job::Initializer::KIND_NOT_SET) {
      kernel.initializer.mutable_glorot_uniform();
    }
    model_.variables.push_back(std::move(kernel));
    if (resolved.has_bias) {
      VariableSpec bias = {.name = resolved.name + "/bias",
                           .shape = {dense.units()},
                           .initializer = dense.bias_initializer()};
      if (bias.initializer.kind_case() == job::Initializer::KIND_NOT_SET) {
        bias.initializer.mutable_zeros();
      }
      model_.variables.push_back(std::move(bias));
    }
    elements_ = dense.units();
    shape_ = {elements_};
    return absl::OkStatus();
  }

  absl::Status CheckOutput() const {
    if (model_.variables.empty()) {
      return absl::InvalidArgumentError(
          "model has no layer with variables: nothing to train");
    }
    if (shape_.size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model.layer[", spec_.layer_size() - 1, "] \"",
          model_.layers.back().name, "\": the last output is [",
          absl::StrJoin(shape_, ", "), "], not one logit per class"));
    }
    if (spec_.loss().kind_case() == job::Loss::KIND_NOT_SET) {
      return absl::InvalidArgumentError(
          "model.loss is not set: sparse_categorical_crossentropy {}");
    }
    return absl::OkStatus();
  }

  const job::Model& spec_;
  ResolvedModel model_;
  // Of the output of the last layer resolved.
  std::vector<int64_t> shape_;
  int64_t elements_ = 0;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace

absl::StatusOr<ResolvedModel> ResolveModel(const job::Model& spec) {
  return Resolver(spec).Resolve();
}

}  // namespace parasol
