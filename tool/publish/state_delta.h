#ifndef PARASOL_TOOL_PUBLISH_STATE_DELTA_H_
#define PARASOL_TOOL_PUBLISH_STATE_DELTA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/tensor_files/tensor_reader.h"
#include "tool/publish/published_version.h"

namespace parasol {

// The result of one reading of a state, and of a base beside it.
struct StateComparison {
  // Tensors of the state, and of the base; none without a base.
  std::vector<PublishedTensor> tensors = {};
  std::vector<PublishedTensor> base = {};
  // Checksums of the state's tensors.
  std::vector<uint32_t> adler32 = {};
  // Numbers of bytes of each tensor that are not the base's; 0 without a base.
  std::vector<uint64_t> changed = {};
  uint64_t changed_bytes = 0;  // sum of `changed`
  uint64_t bytes = 0;          // size of the state
};

// Reads both states once, in pieces. `base` has tensors of the state's names,
// types and shapes, in its order, or is null. Fails as reading does.
absl::StatusOr<StateComparison> CompareStates(TensorReader& state,
                                              TensorReader* base);

// Returns true if `base` can be a base of `state`: the same tensors, in the
// same order.
bool HaveSameTensors(const TensorReader& state, const TensorReader& base);

// Returns true if `format` can hold this delta and may be smaller than the
// state. An overwritten byte takes five before compression, and has a place of
// 32 bits.
bool IsWorthEncoding(VersionFormat format, const StateComparison& comparison);

// Writes the delta `format` of what CompareStates() compared to `path`: a
// safetensors file with a tensor of bytes for each tensor that differs, a
// zstd frame, and the Adler-32 of its new bytes in the metadata.
//   xor        the new bytes XORed with the base's.
//   overwrite  a count, little-endian, 32 bits; that many places in the
//              tensor's bytes, ascending, 32 bits each; their new bytes.
// Makes a file `path` + ".frames" meanwhile. Fails as reading and writing do.
absl::Status WriteDelta(VersionFormat format, TensorReader& state,
                        TensorReader& base, const StateComparison& comparison,
                        const std::string& path);

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_STATE_DELTA_H_
