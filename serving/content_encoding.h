#ifndef PARASOL_SERVING_CONTENT_ENCODING_H_
#define PARASOL_SERVING_CONTENT_ENCODING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The values of Content-Encoding that Unpacked() knows beside "identity".
inline constexpr char kContentEncodings[] = "gzip, deflate";

// Returns `body`, which has `encoding`, the value of Content-Encoding, as it
// was before. Takes no more memory than `max_bytes` beside it. Pure.
//   Unimplemented    the encoding is not known: names it.
//   OutOfRange       it is more than `max_bytes` when it is unpacked.
//   InvalidArgument  it is damaged, cut off, or followed by other bytes.
absl::StatusOr<std::string> Unpacked(absl::string_view encoding,
                                     std::string body, int64_t max_bytes);

}  // namespace parasol

#endif  // PARASOL_SERVING_CONTENT_ENCODING_H_
