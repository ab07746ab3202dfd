#include "ps/written_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/uri/uri_path.h"

namespace parasol {

absl::Status CheckWrittenDirectory(absl::string_view flag,
                                   const std::string& path, bool make) {
  const auto fault = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", flag, "=", path, ": ", what,
        "; name a directory of this machine that this task can write to"));
  };
  if (IsUri(path)) return fault("a store takes no such files");
  std::error_code error;
  if (make) std::filesystem::create_directories(path, error);
  if (error) return fault(error.message());
  std::string file = absl::StrCat(path, "/parasol-check-XXXXXX");
  const int descriptor = mkostemp(file.data(), O_CLOEXEC);
  if (descriptor < 0) {
    const int code = errno;
    const absl::Status refused = fault(std::strerror(code));
    // What may pass has the process started again.
    const bool may_pass = code == EIO || code == ESTALE || code == EINTR ||
                          code == EMFILE || code == ENFILE || code == ENOMEM;
    return may_pass ? absl::UnavailableError(refused.message()) : refused;
  }
  close(descriptor);
  unlink(file.c_str());
  return absl::OkStatus();
}

}  // namespace parasol
