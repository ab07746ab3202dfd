#include "tool/checkpoint/checkpoint_values.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<int64_t> ElementsOf(
    const durable::CheckpointVariable& variable) {
  int64_t elements = 1;
  for (const int64_t size : variable.shape()) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      return absl::DataLossError(
          absl::StrCat("variable ", variable.name(), " has the shape ",
                       ShapeText(variable.shape()), ", which is not possible"));
    }
  }
  return elements;
}

absl::StatusOr<int64_t> VisitElements(
    const CheckpointReader& checkpoint,
    const durable::CheckpointVariable& variable, int array,
    ElementsVisit visit) {
  ASSIGN_OR_RETURN(const int64_t elements, ElementsOf(variable));
  std::vector<float> piece(std::min<int64_t>(elements, kPieceElements));
  int64_t updates = 0;
  for (int64_t first = 0; first < elements;) {
    piece.resize(std::min<int64_t>(elements - first, kPieceElements));
    const absl::StatusOr<int64_t> read = checkpoint.ReadElements(
        variable.name(), array, first, absl::MakeSpan(piece));
    if (absl::IsNotFound(read.status())) {
      return absl::DataLossError(read.status().message());
    }
    RETURN_IF_ERROR(read.status());
    updates = std::max(updates, *read);
    RETURN_IF_ERROR(visit(first, piece));
    first += static_cast<int64_t>(piece.size());
  }
  return updates;
}

}  // namespace parasol
