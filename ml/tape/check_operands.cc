#include "ml/tape/check_operands.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status CheckDType(const OperationCall& call, int i, DType dtype) {
  if (call.inputs[i].dtype() == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " is ", NameOf(call.inputs[i].dtype()),
                   "; it must be ", NameOf(dtype)));
}

absl::Status CheckFloats(const OperationCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckDType(call, static_cast<int>(i), DType::kFloat32));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> AxisOf(int64_t axis, int rank) {
  const int64_t place = axis < 0 ? axis + rank : axis;
  if (place >= 0 && place < rank) return static_cast<int>(place);
  return absl::InvalidArgumentError(
      absl::StrCat("axis ", axis, " of a tensor with ", rank,
                   rank == 1 ? " axis" : " axes"));
}

absl::StatusOr<TensorType> TypeOfInput(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  return TensorType{DType::kFloat32, call.shape(0)};
}

}  // namespace parasol
