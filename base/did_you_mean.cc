#include "base/did_you_mean.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

// Longer names, and candidates beyond this number, are not compared: the
// comparison takes the product of the lengths.
constexpr size_t kMaxBytes = 200;
constexpr size_t kMaxCandidates = 65536;

}  // namespace

// The Damerau-Levenshtein distance with adjacent exchanges (optimal string
// alignment).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, changed});
      const bool exchanged =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kMaxBytes) return "";
  const std::string wanted = absl::AsciiStrToLower(name);
  // One more than the largest distance that counts as near.
  size_t nearest = std::max(name.size() / 3, size_t{name.size() > 2}) + 1;
  std::string best;
  const size_t compared = std::min(candidates.size(), kMaxCandidates);
  for (size_t i = 0; i < compared; ++i) {
    const std::string& candidate = candidates[i];
    const size_t longer = std::max(candidate.size(), name.size());
    const size_t shorter = std::min(candidate.size(), name.size());
    if (candidate == name || longer - shorter >= nearest) continue;
    const size_t distance =
        EditDistance(wanted, absl::AsciiStrToLower(candidate));
    // A name of which no letter is left is no slip.
    if (distance >= nearest || distance >= longer) continue;
    nearest = distance;
    best = candidate;
  }
  return best;
}

std::string DidYouMean(absl::string_view name,
                       const std::vector<std::string>& candidates) {
  const std::string nearest = NearestName(name, candidates);
  if (nearest.empty()) return "";
  return absl::StrCat("; did you mean \"", ShownText(nearest, kMaxBytes),
                      "\"?");
}

}  // namespace parasol
