#include "ml/input/file/open_error.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/resource_limits.h"

namespace parasol {

absl::Status OpenError(const std::string& path, int error) {
  if (IsOutOfDescriptors(error)) {
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(error),
                                               "; ", DescriptorsHint()));
  }
  if (error == EIO || error == ESTALE || error == ETIMEDOUT) {
    return absl::UnavailableError(
        absl::StrCat(path, ": ", std::strerror(error)));
  }
  return absl::ErrnoToStatus(error, path);
}

}  // namespace parasol
