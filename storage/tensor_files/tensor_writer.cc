#include "storage/tensor_files/tensor_writer.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status TensorWriter::Append(absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(EndIfComplete());
  if (next_ == parts_.size() || bytes.size() > missing_) {
    return absl::InvalidArgumentError(absl::StrCat(
        bytes.size(), " bytes are more than ",
        next_ == parts_.size() ? "all tensors have"
                               : absl::StrCat(parts_[next_].AsTensor().name,
                                              " lacks (", missing_, ")")));
  }
  missing_ -= bytes.size();
  RETURN_IF_ERROR(WriteElements(bytes));
  return EndIfComplete();
}

absl::Status TensorWriter::Finish() {
  RETURN_IF_ERROR(EndIfComplete());
  if (next_ < parts_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensor ", parts_[next_].AsTensor().name, " lacks ",
                     missing_, " bytes"));
  }
  return Commit();
}

absl::Status TensorWriter::BeginIfNew() {
  if (begun_) return absl::OkStatus();
  ASSIGN_OR_RETURN(missing_, CountBytes(parts_[next_].AsTensor()));
  begun_ = true;
  return BeginPart(parts_[next_]);
}

absl::Status TensorWriter::EndIfComplete() {
  while (next_ < parts_.size()) {
    RETURN_IF_ERROR(BeginIfNew());
    if (missing_ > 0) break;
    RETURN_IF_ERROR(EndPart(parts_[next_]));
    ++next_;
    begun_ = false;
  }
  return absl::OkStatus();
}

}  // namespace parasol
