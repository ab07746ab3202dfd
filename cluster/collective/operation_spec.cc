#include "cluster/collective/operation_spec.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/crc32c.h"

namespace parasol {
namespace {

// A spec as it travels.
struct Wire {
  uint32_t kind;
  uint32_t source;
  uint64_t size;
  uint64_t own_bytes;
  uint64_t receivers;
  uint64_t algorithm;
  uint64_t chunk_bytes;
  uint64_t check;
};
static_assert(sizeof(Wire) == OperationSpec::kBytes);

}  // namespace

std::string OperationSpec::ToString() const {
  switch (kind) {
    case OperationKind::kAllReduce:
      return absl::StrCat("all-reduce of ", size, " elements, algorithm ",
                          static_cast<int>(algorithm), ", chunks of ",
                          chunk_bytes);
    case OperationKind::kReduceScatter:
      return absl::StrCat("reduce-scatter of ", size, " elements, chunks of ",
                          chunk_bytes);
    case OperationKind::kAllGather:
      return "all-gather";
    case OperationKind::kBroadcast:
      break;
  }
  const std::string bytes =
      size == kUnknownSize ? "" : absl::StrCat(" of ", size, " bytes");
  return absl::StrCat("broadcast", bytes, " from rank ", source,
                      " to receivers #", receivers);
}

bool OperationSpec::Agrees(const OperationSpec& other) const {
  const bool same_size =
      size == other.size || size == kUnknownSize || other.size == kUnknownSize;
  return kind == other.kind && same_size && source == other.source &&
         receivers == other.receivers && algorithm == other.algorithm &&
         chunk_bytes == other.chunk_bytes;
}

std::string OperationSpec::Encode() const {
  const Wire wire = {
      static_cast<uint32_t>(kind),      source,      size, own_bytes, receivers,
      static_cast<uint64_t>(algorithm), chunk_bytes, check};
  return std::string(reinterpret_cast<const char*>(&wire), sizeof(wire));
}

absl::StatusOr<OperationSpec> OperationSpec::Parse(absl::string_view bytes) {
  Wire wire;
  if (bytes.size() != sizeof(wire)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an operation of ", bytes.size(), " bytes"));
  }
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  constexpr auto kLast = static_cast<uint64_t>(ReductionAlgorithm::kMachines);
  if (wire.kind < 1 || wire.kind > 4 || wire.algorithm > kLast) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an operation of kind ", wire.kind, ", algorithm ", wire.algorithm));
  }
  OperationSpec spec;
  spec.kind = static_cast<OperationKind>(wire.kind);
  spec.size = wire.size;
  spec.own_bytes = wire.own_bytes;
  spec.source = wire.source;
  spec.receivers = wire.receivers;
  spec.algorithm = static_cast<ReductionAlgorithm>(wire.algorithm);
  spec.chunk_bytes = wire.chunk_bytes;
  spec.check = wire.check;
  return spec;
}

uint64_t CheckOf(absl::string_view bytes) {
  return bytes.size() > OperationSpec::kMaxCheckedBytes ? 0 : Crc32cOf(bytes);
}

uint64_t FingerprintOf(const std::vector<int>& receivers) {
  uint64_t fingerprint = receivers.size();
  for (const int rank : receivers) {
    fingerprint = (fingerprint ^ static_cast<uint64_t>(rank)) *
                  uint64_t{0x9E3779B97F4A7C15};
    fingerprint ^= fingerprint >> 29;
  }
  return fingerprint;
}

}  // namespace parasol
