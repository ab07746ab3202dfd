#include "cluster/rows/row_sample.h"

#include <algorithm>
#include <iterator>

namespace parasol {

RowSample::RowSample(size_t width)
    : limit_(
          std::clamp<size_t>(kValues / std::max<size_t>(width, 1), 1, kRows)) {}

void RowSample::Take(uint64_t hash, uint64_t id) {
  ids_.emplace(hash, id);
  if (ids_.size() > limit_) ids_.erase(std::prev(ids_.end()));
  is_full_ = ids_.size() == limit_;
  if (is_full_) largest_ = ids_.rbegin()->first;
}

std::vector<uint64_t> RowSample::Ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(ids_.size());
  for (const auto& [hash, id] : ids_) ids.push_back(id);
  return ids;
}

}  // namespace parasol
