#include "cluster/job/validate_layer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/job/field_checks.h"
#include "google/protobuf/repeated_field.h"

namespace parasol {
namespace {

// Largest size of a window and of its stride, in pixels.
constexpr int64_t kMaxPixels = 1 << 15;
constexpr int64_t kMaxAxis = 15;

using Numbers = google::protobuf::RepeatedField<int64_t>;

absl::Status RequireAllInRange(const std::string& path, const Numbers& numbers,
                               int64_t low, int64_t high) {
  for (int i = 0; i < numbers.size(); ++i) {
    RETURN_IF_ERROR(
        RequireInRange(absl::StrCat(path, "[", i, "]"), numbers[i], low, high));
  }
  return absl::OkStatus();
}

// Height and width, or one number for both.
absl::Status RequirePixels(const std::string& path, const Numbers& numbers) {
  if (numbers.empty()) return Missing(path);
  if (numbers.size() > 2) {
    return Fault(path, absl::StrCat(numbers.size(),
                                    " numbers, not height and width, or one "
                                    "for both"));
  }
  return RequireAllInRange(path, numbers, 1, kMaxPixels);
}

absl::Status RequireEpsilon(const std::string& path, double epsilon) {
  // Kernels divide by its root in float32.
  constexpr double kLeast = std::numeric_limits<float>::min();
  if (epsilon >= kLeast && epsilon <= 1) return absl::OkStatus();
  return Fault(path, absl::StrCat(epsilon, " is not in ", kLeast, " to 1"));
}

// What dense and conv2d have in common.
template <typename Affine>
absl::Status ValidateAffine(const std::string& path, const Affine& affine) {
  RETURN_IF_ERROR(ValidateInitializer(affine.kernel_initializer()))
      << path << ".kernel_initializer";
  RETURN_IF_ERROR(ValidateInitializer(affine.bias_initializer()))
      << path << ".bias_initializer";
  RETURN_IF_ERROR(
      RequireAtLeastZero(absl::StrCat(path, ".kernel_l2"), affine.kernel_l2()));
  return RequireAtLeastZero(absl::StrCat(path, ".bias_l2"), affine.bias_l2());
}

absl::Status ValidateDense(const std::string& path, const job::Dense& dense) {
  const std::string units = absl::StrCat(path, ".units");
  if (!dense.has_units()) return Missing(units);
  RETURN_IF_ERROR(RequireInRange(units, dense.units(), 1, kMaxInt));
  return ValidateAffine(path, dense);
}

absl::Status ValidateConv2D(const std::string& path,
                            const job::Conv2D& conv2d) {
  const std::string filters = absl::StrCat(path, ".filters");
  if (!conv2d.has_filters()) return Missing(filters);
  RETURN_IF_ERROR(RequireInRange(filters, conv2d.filters(), 1, kMaxInt));
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".kernel_size"), conv2d.kernel_size()));
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".stride"), conv2d.stride()));
  return ValidateAffine(path, conv2d);
}

absl::Status ValidatePool(const std::string& path, const job::Pool& pool) {
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".pool_size"), pool.pool_size()));
  return RequirePixels(absl::StrCat(path, ".stride"), pool.stride());
}

absl::Status ValidateBatchNormalization(
    const std::string& path, const job::BatchNormalization& normalization) {
  const double momentum = normalization.momentum();
  if (!(momentum >= 0 && momentum <= 1)) {
    return Fault(absl::StrCat(path, ".momentum"),
                 absl::StrCat(momentum, " is not in 0 to 1"));
  }
  RETURN_IF_ERROR(
      RequireEpsilon(absl::StrCat(path, ".epsilon"), normalization.epsilon()));
  RETURN_IF_ERROR(ValidateInitializer(normalization.gamma_initializer()))
      << path << ".gamma_initializer";
  return absl::OkStatus();
}

absl::Status ValidateDropout(const std::string& path,
                             const job::Dropout& dropout) {
  const std::string rate = absl::StrCat(path, ".rate");
  if (!dropout.has_rate()) return Missing(rate);
  if (dropout.rate() >= 0 && dropout.rate() < 1) return absl::OkStatus();
  return Fault(rate,
               absl::StrCat(dropout.rate(), " is not at least 0 and below 1"));
}

// Checks an embedding or embedding_bag.
template <typename Lookup>
absl::Status ValidateLookup(const std::string& path, const Lookup& lookup,
                            const job::Model& model) {
  const std::string table = absl::StrCat(path, ".table");
  if (lookup.table().empty()) return Missing(table);
  const auto is_meant = [&lookup](const job::SparseTable& declared) {
    return declared.name() == lookup.table();
  };
  if (std::none_of(model.sparse_table().begin(), model.sparse_table().end(),
                   is_meant)) {
    return Fault(
        table,
        absl::StrCat("\"", absl::CHexEscape(lookup.table().substr(0, 100)),
                     "\" is the name of no model.sparse_table"));
  }
  return RequireAtLeastZero(absl::StrCat(path, ".l2"), lookup.l2());
}

absl::Status ValidatePad(const std::string& path, const job::Pad& pad) {
  if (pad.before_size() != pad.after_size()) {
    return Fault(path, absl::StrCat("before has ", pad.before_size(),
                                    " numbers and after ", pad.after_size(),
                                    ": both need one for each axis"));
  }
  RETURN_IF_ERROR(RequireAllInRange(absl::StrCat(path, ".before"), pad.before(),
                                    0, kMaxInt));
  return RequireAllInRange(absl::StrCat(path, ".after"), pad.after(), 0,
                           kMaxInt);
}

absl::Status ValidateCustomLayer(const std::string& path,
                                 const job::CustomLayer& custom) {
  if (custom.type().empty()) return Missing(absl::StrCat(path, ".type"));
  const std::string output_shape = absl::StrCat(path, ".output_shape");
  if (custom.output_shape().empty()) return Missing(output_shape);
  RETURN_IF_ERROR(
      RequireAllInRange(output_shape, custom.output_shape(), 1, kMaxInt));
  for (int i = 0; i < custom.variable_size(); ++i) {
    const std::string of = absl::StrCat(path, ".variable[", i, "]");
    const job::CustomVariable& variable = custom.variable(i);
    if (variable.name().empty()) return Missing(absl::StrCat(of, ".name"));
    RETURN_IF_ERROR(RequireAllInRange(absl::StrCat(of, ".shape"),
                                      variable.shape(), 1, kMaxInt));
    RETURN_IF_ERROR(ValidateInitializer(variable.initializer()))
        << of << ".initializer";
  }
  return absl::OkStatus();
}

absl::Status ValidateKind(const std::string& path, const job::Layer& layer,
                          const job::Model& model) {
  switch (layer.kind_case()) {
    case job::Layer::kDense:
      return ValidateDense(path, layer.dense());
    case job::Layer::kConv2D:
      return ValidateConv2D(path, layer.conv2d());
    case job::Layer::kBatchNormalization:
      return ValidateBatchNormalization(path, layer.batch_normalization());
    case job::Layer::kMaxPool:
      return ValidatePool(path, layer.max_pool());
    case job::Layer::kAveragePool:
      return ValidatePool(path, layer.average_pool());
    case job::Layer::kDropout:
      return ValidateDropout(path, layer.dropout());
    case job::Layer::kConcatenate:
      return RequireInRange(absl::StrCat(path, ".axis"),
                            layer.concatenate().axis(), -1, kMaxAxis);
    case job::Layer::kEmbedding:
      return ValidateLookup(path, layer.embedding(), model);
    case job::Layer::kEmbeddingBag:
      return ValidateLookup(path, layer.embedding_bag(), model);
    case job::Layer::kLayerNormalization:
      return RequireEpsilon(absl::StrCat(path, ".epsilon"),
                            layer.layer_normalization().epsilon());
    case job::Layer::kPad:
      return ValidatePad(path, layer.pad());
    case job::Layer::kCustom:
      return ValidateCustomLayer(path, layer.custom());
    case job::Layer::kActivation:
    case job::Layer::kFlatten:
    case job::Layer::kGlobalAveragePool:
    case job::Layer::kAdd:
    case job::Layer::kFactorizationMachine:
    case job::Layer::KIND_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateInitializer(const job::Initializer& initializer) {
  switch (initializer.kind_case()) {
    case job::Initializer::kConstant:
      return RequireFinite("constant.value", initializer.constant().value());
    case job::Initializer::kRandomNormal: {
      const job::RandomNormal& normal = initializer.random_normal();
      RETURN_IF_ERROR(RequireFinite("random_normal.mean", normal.mean()));
      return RequireAtLeastZero("random_normal.stddev", normal.stddev());
    }
    case job::Initializer::kRandomUniform: {
      const job::RandomUniform& uniform = initializer.random_uniform();
      RETURN_IF_ERROR(RequireFinite("random_uniform.minval", uniform.minval()));
      RETURN_IF_ERROR(RequireFinite("random_uniform.maxval", uniform.maxval()));
      // The draw scales by the difference.
      if (uniform.minval() <= uniform.maxval() &&
          std::isfinite(uniform.maxval() - uniform.minval())) {
        return absl::OkStatus();
      }
      return Fault("random_uniform",
                   absl::StrCat("minval ", uniform.minval(), " and maxval ",
                                uniform.maxval(),
                                ": maxval must be at least minval, and their "
                                "difference finite"));
    }
    case job::Initializer::kZeros:
    case job::Initializer::kGlorotUniform:
    case job::Initializer::kHeNormal:
      return absl::OkStatus();
    case job::Initializer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "no initializer is chosen: zeros, constant, random_normal, "
      "random_uniform, glorot_uniform or he_normal");
}

absl::Status ValidateLayers(const job::Model& model) {
  for (int i = 0; i < model.layer_size(); ++i) {
    const std::string path = absl::StrCat("model.layer[", i, "]");
    const job::Layer& layer = model.layer(i);
    const auto* kind =
        job::Layer::descriptor()->FindFieldByNumber(layer.kind_case());
    if (kind == nullptr) {
      return Fault(path, "no kind is chosen: dense, conv2d, activation, …");
    }
    if (layer.name().empty()) return Missing(absl::StrCat(path, ".name"));
    RETURN_IF_ERROR(
        ValidateKind(absl::StrCat(path, ".", kind->name()), layer, model));
  }
  return absl::OkStatus();
}

}  // namespace parasol
