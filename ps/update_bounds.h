#ifndef PARASOL_PS_UPDATE_BOUNDS_H_
#define PARASOL_PS_UPDATE_BOUNDS_H_

#include <algorithm>
#include <cstdint>

namespace parasol {

// The smallest and the largest number of updates over chunks or tables.
struct UpdateBounds {
  int64_t min = INT64_MAX;
  int64_t max = 0;

  void Include(int64_t updates) {
    min = std::min(min, updates);
    max = std::max(max, updates);
  }
};

}  // namespace parasol

#endif  // PARASOL_PS_UPDATE_BOUNDS_H_
