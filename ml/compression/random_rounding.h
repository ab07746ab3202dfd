#ifndef PARASOL_ML_COMPRESSION_RANDOM_ROUNDING_H_
#define PARASOL_ML_COMPRESSION_RANDOM_ROUNDING_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace parasol {

// Writes float32 values as bfloat16, 2 bytes each, little-endian, to `out`,
// which is at any alignment and does not overlap `values`. A value between two
// bfloat16 becomes either, the nearer one more often: the mean over many keys
// is the value. So small changes of a value add up, where rounding to nearest
// would drop each of them. Element i has the random bits RandomBitsOf(key, i)
// (half_bits.h): the same key gives the same bits, on every machine.
void EncodeAtRandom(absl::Span<const float> values, uint64_t key,
                    std::byte* out);

}  // namespace parasol

#endif  // PARASOL_ML_COMPRESSION_RANDOM_ROUNDING_H_
