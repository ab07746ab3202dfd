#ifndef PARASOL_ML_INPUT_FEATURE_NUMBER_H_
#define PARASOL_ML_INPUT_FEATURE_NUMBER_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace parasol {

// Parses a decimal number with or without sign, point and exponent, and nothing
// around it: "+1", "-.5", "1e-3". Returns the nearest double, 0 for numbers too
// small for any, or nullopt if `text` is not a number or not finite.
std::optional<double> ParseNumber(absl::string_view text);

// Parses a decimal integer without fraction, with or without sign.
std::optional<int64_t> ParseInteger(absl::string_view text);

// Parses a decimal integer from 0 to 2^64 - 1.
std::optional<uint64_t> ParseUnsigned(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_NUMBER_H_
