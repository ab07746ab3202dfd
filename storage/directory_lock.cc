#include "storage/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<DirectoryLock> DirectoryLock::Share(
    const std::string& directory) {
  ASSIGN_OR_RETURN(FileDescriptor opened,
                   FileDescriptor::Open(directory, O_RDONLY | O_DIRECTORY));
  if (flock(opened.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::UnavailableError(absl::StrCat(
        directory, ": another process is removing this directory"));
  }
  return DirectoryLock(std::move(opened));
}

std::optional<DirectoryLock> DirectoryLock::TryExclude(
    const std::string& directory) {
  absl::StatusOr<FileDescriptor> opened =
      FileDescriptor::Open(directory, O_RDONLY | O_DIRECTORY);
  if (!opened.ok() || flock(opened->get(), LOCK_EX | LOCK_NB) != 0) {
    return std::nullopt;
  }
  return DirectoryLock(*std::move(opened));
}

}  // namespace parasol
