#ifndef PARASOL_BASE_STRICT_JSON_H_
#define PARASOL_BASE_STRICT_JSON_H_

#include <cstddef>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

// JSON from files, environments and networks. The library's own parser takes
// 78 bytes of memory for each "[" that it reads.
namespace parasol {

inline constexpr size_t kMaxJsonBytes = 1 << 20;
inline constexpr size_t kMaxJsonDepth = 64;

// Parses `text` as one JSON value (RFC 8259, UTF-8). Stricter than the RFC in
// one point: no object may have a key twice.
//   InvalidArgument  "line L, column C: …": not JSON, anything after the value,
//                    a key twice, nested deeper than kMaxJsonDepth; or the
//                    text is longer than kMaxJsonBytes.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text);

// Parses as above. Objects keep the order of their keys.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(absl::string_view text);

// Values inside one member that VisitJsonMembers() visits, at most, unless its
// caller says otherwise.
inline constexpr size_t kMaxMemberValues = 100'000;

// Parses `text` as one JSON object of any length, and calls `visit` with each
// of its members. Holds one member at a time. A name may come twice.
//   InvalidArgument  as above; the value is no object; or a member has more
//                    than `max_member_values` values.
//   any other        the first error that `visit` returns.
absl::Status VisitJsonMembers(
    absl::string_view text,
    absl::FunctionRef<absl::Status(const std::string& name,
                                   const nlohmann::json& value)>
        visit,
    size_t max_member_values = kMaxMemberValues);

}  // namespace parasol

#endif  // PARASOL_BASE_STRICT_JSON_H_
