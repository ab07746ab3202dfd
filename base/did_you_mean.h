#ifndef PARASOL_BASE_DID_YOU_MEAN_H_
#define PARASOL_BASE_DID_YOU_MEAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns how many slips make `b` of `a`: a letter too many, too few, wrong, or
// two that are exchanged. Takes the product of the lengths. Pure.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the one of `candidates` that `name` is most likely a slip of, by
// EditDistance() (upper and lower case count as equal). Returns "" if none is
// near: up to a third of the letters may be wrong. Pure.
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& candidates);

// Returns the end of an error: "; did you mean \"units\"?", or "" if no
// candidate is near.
std::string DidYouMean(absl::string_view name,
                       const std::vector<std::string>& candidates);

}  // namespace parasol

#endif  // PARASOL_BASE_DID_YOU_MEAN_H_
