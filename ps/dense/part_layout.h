#ifndef PARASOL_PS_DENSE_PART_LAYOUT_H_
#define PARASOL_PS_DENSE_PART_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The chunks that a shard's parts consist of. They are numbered through all
// parts, part by part. Immutable.
class PartLayout {
 public:
  //   InvalidArgument    ids are not 0, 1, …; a part is empty, not inside its
  //                      variable, or overlaps another; a size is over 2^63.
  //   ResourceExhausted  all parts together have more than `max_elements`.
  static absl::StatusOr<PartLayout> Create(
      const google::protobuf::RepeatedPtrField<wire::PartSpec>& parts,
      uint64_t max_elements);

  struct Chunk {
    size_t part = 0;
    int64_t first_element = 0;  // index in the flattened variable
    size_t elements = 0;
  };

  const std::vector<wire::PartSpec>& parts() const { return parts_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  // Number of elements of all parts.
  uint64_t elements() const { return elements_; }

  // Returns the chunks' numbers, ascending by (variable, first_element): the
  // order in which a checkpoint keeps the chunks.
  std::vector<size_t> ChunksInCheckpointOrder() const;

  // Chunks [first, last), which have `elements` elements.
  struct ChunkRange {
    size_t first = 0;
    size_t last = 0;
    size_t elements = 0;
  };
  using ChunkRanges = absl::InlinedVector<ChunkRange, 1>;

  // Returns the chunks of each range.
  //   InvalidArgument  a range names no part, doesn't consist of whole chunks,
  //                    or overlaps another; there are none, or too many ranges.
  absl::StatusOr<ChunkRanges> Resolve(
      const google::protobuf::RepeatedPtrField<wire::TensorRange>& ranges)
      const;

 private:
  PartLayout() = default;
  absl::Status AddPart(const wire::PartSpec& part, uint64_t max_elements);
  absl::Status CheckPartsDisjoint() const;
  absl::StatusOr<ChunkRange> ResolveOne(const wire::TensorRange& range) const;

  std::vector<wire::PartSpec> parts_;
  std::vector<size_t> first_chunk_;  // number of each part's first chunk
  std::vector<Chunk> chunks_;
  uint64_t elements_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_PART_LAYOUT_H_
