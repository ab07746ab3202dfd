#ifndef PARASOL_TOOL_EXCHANGE_MOVED_ELEMENTS_H_
#define PARASOL_TOOL_EXCHANGE_MOVED_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tool/exchange/flat_orders.h"

// Functions that move the elements of a tensor, row-major. Pure.
namespace parasol {

// Returns the rows of `from` in the order `rows`, which are not empty: row i is
// row rows[i] of `from`.
std::vector<char> Reordered(const std::vector<char>& from,
                            const RowOrder& rows);

// Returns the order that undoes `rows`.
RowOrder Inverse(const RowOrder& rows);

// Returns the elements of `from`, of `shape` and `element` bytes each, with the
// axes in the order `axes`.
std::vector<char> Permuted(const std::vector<char>& from,
                           const std::vector<int64_t>& shape,
                           const std::vector<size_t>& axes, size_t element);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_MOVED_ELEMENTS_H_
