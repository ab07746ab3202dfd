#ifndef PARASOL_CLUSTER_COLLECTIVE_OPERATION_SPEC_H_
#define PARASOL_CLUSTER_COLLECTIVE_OPERATION_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

enum class OperationKind : uint32_t {
  kAllReduce = 1,
  kReduceScatter = 2,
  kAllGather = 3,
  kBroadcast = 4,
};

// The description of an operation: the same at all ranks, but for what one
// gathers and what those know who only look on. A rank tells it to the others
// when it begins the operation.
struct OperationSpec {
  static constexpr size_t kBytes = 56;
  // The size of a broadcast at a rank that neither sends nor receives.
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  // Bytes of a gather or a broadcast that are checked when they have come: what
  // ranks agree on is no larger. Gradients of rows and variables may be, and
  // take as long to be checked as to be sent.
  static constexpr size_t kMaxCheckedBytes = 64 << 10;

  OperationKind kind = OperationKind::kAllReduce;
  // Elements of a sum, bytes of a broadcast.
  uint64_t size = 0;
  uint64_t own_bytes = 0;  // gathered of this rank
  uint32_t source = 0;     // rank that is broadcast
  uint64_t receivers = 0;  // FingerprintOf() theirs
  ReductionAlgorithm algorithm = ReductionAlgorithm::kOneRound;
  uint64_t chunk_bytes = 0;
  // CheckOf() what this rank gathers or broadcasts; GroupProtocol sets it.
  uint64_t check = 0;

  // Returns "all-reduce of 17 elements".
  std::string ToString() const;
  // Returns true if two ranks with these specs carry out the same operation.
  bool Agrees(const OperationSpec& other) const;

  // Returns kBytes bytes, and what such bytes are.
  //   InvalidArgument  they are no spec.
  std::string Encode() const;
  static absl::StatusOr<OperationSpec> Parse(absl::string_view bytes);
};

// Returns the crc32c of bytes that a rank gives to others, or 0 of more than
// kMaxCheckedBytes.
uint64_t CheckOf(absl::string_view bytes);

// Returns a number that two lists of receivers share if they are the same.
uint64_t FingerprintOf(const std::vector<int>& receivers);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_OPERATION_SPEC_H_
