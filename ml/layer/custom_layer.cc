#include "ml/layer/custom_layer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/custom/code_registry.h"
#include "ml/initializer/initializer_fields.h"

namespace parasol {
namespace {

CodeRegistry<CustomLayerFactory>& Registry() {
  static auto* const registry = new CodeRegistry<CustomLayerFactory>(
      "layer", "worker, evaluator and parasol");
  return *registry;
}

absl::Status NotRegistered(const std::string& type) {
  return absl::FailedPreconditionError(Registry().Lacks(type));
}

absl::Status CheckAxes(absl::Span<const int64_t> shape) {
  for (const int64_t axis : shape) {
    if (axis < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(ShapeText(shape), ": axes must be positive"));
    }
  }
  return absl::OkStatus();
}

// A layer as the job file declares it, with the code that computes it, if any.
class DeclaredLayer : public Layer {
 public:
  // `spec` has its defaults filled in.
  static absl::StatusOr<std::unique_ptr<DeclaredLayer>> Make(
      const job::CustomLayer& spec) {
    if (spec.type().empty()) {
      return absl::InvalidArgumentError("custom.type is not set");
    }
    if (spec.output_shape().empty()) {
      return absl::InvalidArgumentError("custom.output_shape is not set");
    }
    auto layer = std::make_unique<DeclaredLayer>();
    layer->type_ = spec.type();
    layer->output_shape_ = {spec.output_shape().begin(),
                            spec.output_shape().end()};
    RETURN_IF_ERROR(CheckAxes(layer->output_shape_)) << "custom.output_shape";
    for (const job::CustomVariable& variable : spec.variable()) {
      RETURN_IF_ERROR(layer->Declare(variable));
    }
    layer->variable_l2_.resize(layer->variables_.size());
    return layer;
  }

  absl::Status SetCode(std::unique_ptr<const Layer> code) {
    if (code->output_shape() != output_shape_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "custom.output_shape is ", ShapeText(output_shape_),
          "; the layer's output is ", ShapeText(code->output_shape())));
    }
    if (VariablesText(*code) != VariablesText(*this)) {
      return absl::InvalidArgumentError(
          absl::StrCat("custom.variable declares ", VariablesText(*this),
                       "; the layer has ", VariablesText(*code)));
    }
    RETURN_IF_ERROR(CheckCode(*code));
    if (!code->variable_l2().empty()) variable_l2_ = code->variable_l2();
    code_ = std::move(code);
    return absl::OkStatus();
  }

  absl::Status CheckCode() const override {
    return code_ == nullptr ? NotRegistered(type_) : absl::OkStatus();
  }
  bool IsRecordable() const override {
    return code_ != nullptr && code_->IsRecordable();
  }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    if (code_ == nullptr) return NotRegistered(type_);
    return code_->NewPass(device, examples);
  }

 private:
  absl::Status Declare(const job::CustomVariable& declared) {
    if (declared.name().empty()) {
      return absl::InvalidArgumentError("custom.variable.name is not set");
    }
    for (const VariableSpec& other : variables_) {
      if (other.name == declared.name()) {
        return absl::InvalidArgumentError(
            absl::StrCat("two variables are called ", declared.name()));
      }
    }
    VariableSpec variable = {
        .name = declared.name(),
        .shape = {declared.shape().begin(), declared.shape().end()},
        .initializer = declared.initializer(),
        .trained = declared.trainable()};
    RETURN_IF_ERROR(CheckAxes(variable.shape))
        << "custom.variable \"" << variable.name << "\"";
    variables_.push_back(std::move(variable));
    return absl::OkStatus();
  }

  // Checks what a declaration cannot state and the model relies on.
  static absl::Status CheckCode(const Layer& code) {
    const size_t l2s = code.variable_l2().size();
    if (l2s == 0 || l2s == code.variables().size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the layer has ", code.variables().size(),
                     " variables, but an l2 of ", l2s));
  }

  // "kernel [2, 3], mean [3] trainable: false".
  static std::string VariablesText(const Layer& layer) {
    if (layer.variables().empty()) return "none";
    return absl::StrJoin(
        layer.variables(), ", ",
        [](std::string* out, const VariableSpec& variable) {
          absl::StrAppend(out, variable.name, " ", ShapeText(variable.shape),
                          variable.trained ? "" : " trainable: false");
        });
  }

  std::string type_;
  std::unique_ptr<const Layer> code_;
};

void FillDefaults(job::CustomLayer& spec) {
  for (job::CustomVariable& variable : *spec.mutable_variable()) {
    FillKernelInitializer(*variable.mutable_initializer());
  }
}

absl::Status CheckRanges(const std::string& path,
                         const job::CustomLayer& spec) {
  if (spec.type().empty()) return Missing(absl::StrCat(path, ".type"));
  const std::string output_shape = absl::StrCat(path, ".output_shape");
  if (spec.output_shape().empty()) return Missing(output_shape);
  RETURN_IF_ERROR(
      RequireAllInRange(output_shape, spec.output_shape(), 1, kMaxInt));
  for (int i = 0; i < spec.variable_size(); ++i) {
    const std::string of = absl::StrCat(path, ".variable[", i, "]");
    const job::CustomVariable& variable = spec.variable(i);
    if (variable.name().empty()) return Missing(absl::StrCat(of, ".name"));
    RETURN_IF_ERROR(RequireAllInRange(absl::StrCat(of, ".shape"),
                                      variable.shape(), 1, kMaxInt));
    RETURN_IF_ERROR(CheckInitializer(variable.initializer()))
        << of << ".initializer";
  }
  return absl::OkStatus();
}

}  // namespace

CustomLayerRegistration::CustomLayerRegistration(absl::string_view type,
                                                 CustomLayerFactory factory) {
  Registry().Add(type, std::move(factory));
}

absl::StatusOr<std::unique_ptr<const Layer>> MakeCustom(
    const job::CustomLayer& spec, absl::Span<const LayerInput> inputs) {
  job::CustomLayer filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(std::unique_ptr<DeclaredLayer> layer,
                   DeclaredLayer::Make(filled));
  const CustomLayerFactory* const factory = Registry().Find(spec.type());
  if (factory != nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<const Layer> code,
                     (*factory)(spec, inputs));
    RETURN_IF_ERROR(layer->SetCode(std::move(code)));
  }
  return layer;
}

absl::string_view ParameterOf(const job::CustomLayer& spec,
                              absl::string_view name,
                              absl::string_view fallback) {
  for (const job::CustomParameter& parameter : spec.parameter()) {
    if (parameter.name() == name) return parameter.value();
  }
  return fallback;
}

constinit const LayerKind kCustomKind = {
    .field = job::Layer::kCustom,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_custom()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.custom());
        },
    .make = [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
               int64_t) { return MakeCustom(layer.custom(), inputs); },
};

}  // namespace parasol
