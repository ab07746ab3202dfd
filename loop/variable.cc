#include "loop/variable.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "loop/core/blank_tensor.h"
#include "loop/strategy.h"
#include "ml/initializer/initializer.h"
#include "ml/tape/tape.h"

namespace parasol::loop {
namespace {

// Most elements that ToString() shows.
constexpr size_t kShown = 8;

absl::StatusOr<std::shared_ptr<VariableState>> Declare(
    VariableSpec spec, const Tensor& value, const Variable::Options& options) {
  Strategy& strategy = GetStrategy();
  spec.shape.assign(value.shape().sizes().values().begin(),
                    value.shape().sizes().values().end());
  spec.trained = options.trainable;
  auto state = std::make_shared<VariableState>(
      std::move(spec), options.aggregation, options.synchronization, value,
      strategy.world());
  RETURN_IF_ERROR(strategy.registry().Add(state));
  return state;
}

}  // namespace

absl::StatusOr<Variable> Variable::Create(absl::string_view name,
                                          const Tensor& value,
                                          const Options& options) {
  RETURN_IF_ERROR(value.status()) << "variable " << name;
  if (value.dtype() != DType::kFloat32) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", name, " is of int64: variables are float32"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<VariableState> state,
                   Declare({.name = std::string(name)}, value, options));
  return Variable(std::move(state));
}

absl::StatusOr<Variable> Variable::Create(absl::string_view name,
                                          const TensorShape& shape,
                                          absl::string_view initializer,
                                          const Options& options) {
  RETURN_IF_ERROR(shape.Check()) << "variable " << name;
  VariableSpec spec = {.name = std::string(name)};
  if (!google::protobuf::TextFormat::ParseFromString(std::string(initializer),
                                                     &spec.initializer)) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", name, ": `", initializer,
                     "` is no initializer; write one as in a job file: "
                     "glorot_uniform {}"));
  }
  float* elements = nullptr;
  const Tensor value = BlankTensor(shape, &elements);
  RETURN_IF_ERROR(value.status()) << "variable " << name;
  RETURN_IF_ERROR(Initialize(
      spec.initializer, GetStrategy().seed(), spec.name, shape.sizes().values(),
      /*first=*/0, absl::MakeSpan(elements, shape.size())))
      << "variable " << name;
  ASSIGN_OR_RETURN(std::shared_ptr<VariableState> state,
                   Declare(std::move(spec), value, options));
  return Variable(std::move(state));
}

absl::StatusOr<Variable> Variable::Create(VariableSpec spec,
                                          const Tensor& value) {
  const Options options = {.trainable = spec.trained,
                           .aggregation = Aggregation::kMean};
  ASSIGN_OR_RETURN(std::shared_ptr<VariableState> state,
                   Declare(std::move(spec), value, options));
  return Variable(std::move(state));
}

Tensor Variable::Read() const {
  const Tensor value = state_->Read();
  return trainable() ? Leaf(key(), value) : value;
}

std::string Variable::ToString() const {
  const Tensor value = state_->Read();
  std::string text = absl::StrCat(name(), ": ", shape().ToString(), " float32");
  if (!value.status().ok()) {
    return absl::StrCat(text, " ", value.status().message());
  }
  const absl::Span<const float> elements = value.values();
  for (size_t i = 0; i < std::min(elements.size(), kShown); ++i) {
    absl::StrAppend(&text, " ", elements[i]);
  }
  if (elements.size() > kShown) absl::StrAppend(&text, " …");
  return text;
}

}  // namespace parasol::loop
