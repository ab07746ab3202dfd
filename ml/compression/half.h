#ifndef PARASOL_ML_COMPRESSION_HALF_H_
#define PARASOL_ML_COMPRESSION_HALF_H_

#include <cstddef>

#include "absl/types/span.h"
#include "proto/job.pb.h"

// Encoding of float32 values for messages: little-endian, in 4 bytes (FLOAT32,
// a copy) or 2 (FLOAT16, BFLOAT16), at any alignment. Pure functions; the same
// bits on every machine. `encoding` must be a value of the enum, which proto2's
// parser guarantees.
namespace parasol {

// Number of bytes that `count` values take.
size_t EncodedBytes(job::Encoding encoding, size_t count);

// Writes EncodedBytes(encoding, values.size()) bytes to `out`, which does not
// overlap `values`. Rounds to nearest, ties to even. FLOAT16 turns values
// beyond 65,504 into an infinity and keeps subnormals; a NaN stays a NaN.
void Encode(job::Encoding encoding, absl::Span<const float> values,
            std::byte* out);

// Decodes the EncodedBytes(encoding, out.size()) bytes at `in`, exactly. A NaN
// of 16 bits becomes quiet.
void Decode(job::Encoding encoding, const std::byte* in, absl::Span<float> out);

}  // namespace parasol

#endif  // PARASOL_ML_COMPRESSION_HALF_H_
