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

// Parses the number of an id: a decimal integer of 64 bits, unsigned or in
// two's complement, from -2^63 to 2^64 - 1. Returns its bits.
std::optional<uint64_t> ParseId(absl::string_view text);

// Returns true if the text is a decimal integer of any size.
bool IsInteger(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_NUMBER_H_
