#ifndef PARASOL_PS_PULL_LIMIT_H_
#define PARASOL_PS_PULL_LIMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {

// Maximum size of one pull in bytes, counted as float32 whatever the encoding:
// the memory that a ps holds for one answer. A larger message would end the
// stream (cluster/rpc).
inline constexpr uint64_t kMaxPullBytes = 48 << 20;

//   InvalidArgument  the elements take more than kMaxPullBytes.
inline absl::Status CheckPullSize(uint64_t elements) {
  if (elements <= kMaxPullBytes / sizeof(float)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "pull of ", elements, " elements: more than ", kMaxPullBytes, " bytes"));
}

}  // namespace parasol

#endif  // PARASOL_PS_PULL_LIMIT_H_
