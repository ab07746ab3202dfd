#include "cluster/trust/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

bool WriteAll(int file, absl::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = write(file, contents.data(), contents.size());
    if (written <= 0) return false;
    contents.remove_prefix(written);
  }
  return true;
}

}  // namespace

absl::Status MemoryFile::Replace(absl::string_view contents) {
  Descriptor next(memfd_create("parasol keys", MFD_CLOEXEC));
  const timespec modified = {.tv_sec = ++version_, .tv_nsec = 0};
  const timespec times[] = {modified, modified};
  if (!next.is_open() || !WriteAll(next.get(), contents) ||
      futimens(next.get(), times) != 0 ||
      (file_.is_open() && dup3(next.get(), file_.get(), O_CLOEXEC) < 0)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a file in memory: ", std::strerror(errno)));
  }
  if (!file_.is_open()) file_ = std::move(next);
  return absl::OkStatus();
}

std::string MemoryFile::path() const {
  return absl::StrCat("/proc/", getpid(), "/fd/", file_.get());
}

}  // namespace parasol
