#include "ml/tape/tensor_shape.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;

}  // namespace

IntList::IntList(absl::Span<const int64_t> values)
    : size_(std::min<int>(values.size(), kMost)),
      is_too_long_(values.size() > kMost) {
  absl::c_copy(values.subspan(0, size_), values_.begin());
}

std::string IntList::ToString() const {
  return absl::StrCat("[", absl::StrJoin(values(), ", "),
                      is_too_long_ ? ", …]" : "]");
}

int64_t TensorShape::size() const {
  int64_t size = 1;
  for (const int64_t n : sizes_.values()) size *= n;
  return size;
}

absl::Status TensorShape::Check() const {
  if (sizes_.is_too_long()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape ", ToString(), " has more than ", IntList::kMost, " axes"));
  }
  int64_t size = 1;
  for (const int64_t n : sizes_.values()) {
    if (n < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ToString(), " has a size below 0"));
    }
    // An axis of size 0 comes with others of any size.
    if (n != 0 && size > kMostElements / n) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", ToString(), " has more than 2^40 elements"));
    }
    size *= std::max<int64_t>(n, 1);
  }
  return absl::OkStatus();
}

}  // namespace parasol
