#include "chief/grown_files.h"

#include <utility>

namespace parasol {

void GrownFiles::Take(std::string name, int64_t bytes) {
  watched_.push_back({std::move(name), bytes});
  if (watched_.size() > kWatched) watched_.pop_front();
}

std::vector<GrownFiles::Grown> GrownFiles::Look(
    absl::FunctionRef<std::optional<int64_t>(const std::string&)> size_of) {
  std::vector<Grown> found;
  std::erase_if(watched_, [&](const Taken& file) {
    const std::optional<int64_t> bytes = size_of(file.name);
    if (bytes.value_or(0) <= file.bytes) return false;
    found.push_back({file.name, file.bytes, *bytes});
    return true;
  });
  return found;
}

}  // namespace parasol
