#include "chief/new_files.h"

#include <functional>
#include <utility>

namespace parasol {
namespace {

size_t HashOf(const std::string& name) {
  return std::hash<std::string>()(name);
}

}  // namespace

NewFiles::NewFiles(std::string last, const std::vector<std::string>& taken,
                   bool are_all)
    : last_(std::move(last)),
      known_until_(taken.empty() ? last_ : taken.front()) {
  if (are_all) known_until_.clear();
  // Whoever wrote of it may have been cut off.
  if (!last_.empty()) known_.insert(HashOf(last_));
  for (const std::string& name : taken) known_.insert(HashOf(name));
}

NewFiles::Found NewFiles::Look(const std::vector<std::string>& first,
                               const std::vector<std::string>& second) {
  Found found;
  absl::flat_hash_set<size_t> known;
  for (const std::string& name : second) {
    if (name > last_) {
      if (!first.empty() && name <= first.back()) found.fresh.push_back(name);
      continue;
    }
    known.insert(HashOf(name));
    if ((has_looked_ || name > known_until_) &&
        !known_.contains(HashOf(name))) {
      found.late.push_back(name);
    }
  }
  known_ = std::move(known);
  has_looked_ = true;
  return found;
}

void NewFiles::Take(const std::string& name) {
  last_ = name;
  known_.insert(HashOf(name));
}

}  // namespace parasol
