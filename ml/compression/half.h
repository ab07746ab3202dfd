#ifndef PARASOL_ML_COMPRESSION_HALF_H_
#define PARASOL_ML_COMPRESSION_HALF_H_

#include <cstddef>

#include "absl/types/span.h"
#include "proto/job.pb.h"

// Float32 values as they travel: little-endian, in 4 bytes (FLOAT32, a copy) or
// 2 (FLOAT16, BFLOAT16), at any alignment. Pure functions; the same bits on
// every machine. `encoding` must be a value of the enum, which proto2's parser
// sees to.
namespace parasol {

// Of `count` values.
size_t EncodedBytes(job::Encoding encoding, size_t count);

// Writes EncodedBytes(encoding, values.size()) bytes to `out`, which overlaps
// `values` nowhere. Rounds to nearest, ties to even: FLOAT16 turns what is
// beyond 65,504 into an infinity and keeps subnormals; a NaN stays one.
void Encode(job::Encoding encoding, absl::Span<const float> values,
            std::byte* out);

// The values of EncodedBytes(encoding, out.size()) bytes at `in`: exact. A NaN
// of 16 bits becomes quiet.
void Decode(job::Encoding encoding, const std::byte* in, absl::Span<float> out);

}  // namespace parasol

#endif  // PARASOL_ML_COMPRESSION_HALF_H_
