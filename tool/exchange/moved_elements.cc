#include "tool/exchange/moved_elements.h"

#include <cstring>

namespace parasol {

std::vector<char> Reordered(const std::vector<char>& from,
                            const RowOrder& rows) {
  const size_t bytes = from.size() / rows.size();
  std::vector<char> to(from.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(&to[i * bytes], &from[static_cast<size_t>(rows[i]) * bytes],
                bytes);
  }
  return to;
}

RowOrder Inverse(const RowOrder& rows) {
  RowOrder inverse(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    inverse[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

std::vector<char> Permuted(const std::vector<char>& from,
                           const std::vector<int64_t>& shape,
                           const std::vector<size_t>& axes, size_t element) {
  const size_t rank = shape.size();
  std::vector<size_t> strides(rank, element);  // of `from`, in bytes
  for (size_t i = rank - 1; i-- > 0;) {
    strides[i] = strides[i + 1] * static_cast<size_t>(shape[i + 1]);
  }
  std::vector<char> to(from.size());
  std::vector<int64_t> index(rank, 0);  // in `to`
  size_t source = 0;
  for (size_t place = 0; place < to.size(); place += element) {
    std::memcpy(&to[place], &from[source], element);
    for (size_t axis = rank; axis-- > 0;) {
      source += strides[axes[axis]];
      if (++index[axis] < shape[axes[axis]]) break;
      source -= strides[axes[axis]] * static_cast<size_t>(index[axis]);
      index[axis] = 0;
    }
  }
  return to;
}

}  // namespace parasol
