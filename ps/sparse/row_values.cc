#include "ps/sparse/row_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace parasol {

RowValues::RowValues(const std::vector<uint64_t>& ids,
                     std::vector<float> values, size_t width, HeldMemory memory)
    : width_(width), values_(std::move(values)), memory_(std::move(memory)) {
  places_.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) places_.emplace(ids[i], i);
}

void RowValues::CopyTo(const std::byte* ids, size_t count, float* rows) const {
  for (size_t i = 0; i < count; ++i) {
    uint64_t id;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    const auto place = places_.find(id);
    if (place == places_.end()) continue;
    std::copy_n(values_.data() + place->second * width_, width_,
                rows + i * width_);
  }
}

}  // namespace parasol
