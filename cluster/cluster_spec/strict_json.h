#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_STRICT_JSON_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_STRICT_JSON_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace parasol {

inline constexpr size_t kMaxJsonBytes = 1 << 20;
inline constexpr size_t kMaxJsonDepth = 64;

// Parses `text` as one JSON value (RFC 8259, UTF-8). Stricter than the RFC in
// one point: no object may have a key twice.
//   InvalidArgument  "line L, column C: …": not JSON, anything after the value,
//                    a key twice, nested deeper than kMaxJsonDepth; or the
//                    text is longer than kMaxJsonBytes.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_STRICT_JSON_H_
