#include "ps/dense/element_runs.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/string_view.h"

namespace parasol {

ElementRuns::Run ElementRuns::Next(size_t max_count) {
  size_t straddling_bytes = 0;
  for (; piece_ < payload_.pieces().size(); ++piece_, offset_ = 0) {
    const absl::string_view rest = payload_.pieces()[piece_].substr(offset_);
    if (straddling_bytes == 0 && rest.size() >= element_bytes_) {
      const size_t count = std::min(max_count, rest.size() / element_bytes_);
      offset_ += count * element_bytes_;
      return {reinterpret_cast<const std::byte*>(rest.data()), count};
    }
    if (rest.empty()) continue;
    const size_t missing =
        std::min(rest.size(), element_bytes_ - straddling_bytes);
    std::memcpy(straddling_ + straddling_bytes, rest.data(), missing);
    straddling_bytes += missing;
    if (straddling_bytes == element_bytes_) {
      offset_ += missing;
      return {straddling_, 1};
    }
  }
  return {};
}

}  // namespace parasol
