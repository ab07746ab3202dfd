#include "ml/input/file/temporary_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

bool IsFull(int error) { return error == ENOSPC || error == EDQUOT; }

absl::Status DiskIsFull(const std::string& folder, uint64_t written) {
  constexpr int kMebiShift = 20;
  struct statvfs disk = {};
  statvfs(folder.c_str(), &disk);
  return absl::InvalidArgumentError(absl::StrCat(
      "no room in ", folder, " for unpacked data: ",
      (uint64_t{disk.f_bavail} * disk.f_frsize) >> kMebiShift,
      " MiB are free, and ", written >> kMebiShift,
      " MiB of it are there; name a folder with more in TMPDIR, or unpack the "
      "files yourself"));
}

}  // namespace

TemporaryFile::TemporaryFile(std::string folder, Descriptor descriptor)
    : folder_(std::move(folder)), descriptor_(std::move(descriptor)) {}

absl::StatusOr<TemporaryFile> TemporaryFile::Create() {
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::ErrnoToStatus(
        error.value(), "the folder for temporary files, which TMPDIR names");
  }
  std::string name = folder + "/parasol-data.XXXXXX";
  Descriptor made(mkostemp(name.data(), O_CLOEXEC));
  if (!made.is_open() && IsFull(errno)) return DiskIsFull(folder, 0);
  if (!made.is_open()) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("a temporary file in ", folder,
                            ", where data are unpacked (TMPDIR)"));
  }
  if (unlink(name.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("removing ", name));
  }
  return TemporaryFile(folder, std::move(made));
}

absl::Status TemporaryFile::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(descriptor_.get(), bytes.data(), bytes.size(),
                             static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && IsFull(errno)) return DiskIsFull(folder_, size_);
    if (n < 0) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("writing unpacked data to ", folder_));
    }
    bytes.remove_prefix(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace parasol
