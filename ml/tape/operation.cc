#include "ml/tape/operation.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/tape_state.h"

namespace parasol {
namespace {

// The rule of a kind asked for a value that the tape had not to keep for it.
absl::Status CheckElements(const Tensor& input) {
  if (TensorAccess::Body(input).data != nullptr || input.size() == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      "an input of shape ", input.shape().ToString(), " was not kept"));
}

absl::StatusOr<Tensor> Compute(const TapeOperationKind& kind,
                               const OperationCall& call) {
  for (const Tensor& input : call.inputs) {
    RETURN_IF_ERROR(CheckElements(input));
  }
  ASSIGN_OR_RETURN(const TensorType type, kind.type(call));
  if (kind.cpu == nullptr) {
    RETURN_IF_ERROR(type.shape.Check());
    return TensorAccess::View(call.inputs[0], type.shape);
  }
  ASSIGN_OR_RETURN(NewTensor result, TensorAccess::New(type));
  RETURN_IF_ERROR(kind.cpu(call, result));
  return std::move(result.tensor);
}

}  // namespace

absl::string_view TapeOperation::name() const {
  return custom != nullptr ? absl::string_view(custom->name) : kind->name;
}

Tensor Apply(const TapeOperationKind& kind, absl::Span<const Tensor> inputs,
             const OperationAttributes& attributes) {
  for (const Tensor& input : inputs) {
    if (!input.status().ok()) return input;
  }
  absl::StatusOr<Tensor> result =
      Compute(kind, {.inputs = inputs, .attributes = attributes});
  if (!result.ok()) {
    return Tensor::Error(
        absl::Status(result.status().code(),
                     absl::StrCat(kind.name, ": ", result.status().message())));
  }
  if (kind.gradient != nullptr && IsRecorded(inputs)) {
    TapeOperation operation;
    operation.kind = &kind;
    operation.attributes = attributes;
    operation.inputs.assign(inputs.begin(), inputs.end());
    operation.outputs.push_back(*result);
    RecordOnTapes(operation);
  }
  return *std::move(result);
}

}  // namespace parasol
