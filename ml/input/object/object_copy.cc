#include "ml/input/object/object_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int kShiftToMebi = 20;

uint64_t MebiBytes(uint64_t bytes) {
  return (bytes + (uint64_t{1} << kShiftToMebi) - 1) >> kShiftToMebi;
}

// Writes an object to its file.
class CopyWriter {
 public:
  CopyWriter(const StoredObject& object, std::string path, int descriptor)
      : object_(object), path_(std::move(path)), descriptor_(descriptor) {}

  // Has the disk's room for all bytes, where the file system can say so.
  absl::Status Reserve() const {
    const auto bytes = static_cast<off_t>(object_.bytes());
    if (bytes == 0 || fallocate(descriptor_, 0, 0, bytes) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS) {
      return absl::OkStatus();
    }
    return WriteError(errno);
  }

  absl::Status WriteAll(size_t piece_bytes, size_t threads) const {
    return object_.ReadAll(piece_bytes, threads,
                           [this](uint64_t offset, absl::string_view piece) {
                             return Write(offset, piece);
                           });
  }

 private:
  absl::Status WriteError(int error) const {
    if (error == ENOSPC || error == EDQUOT) {
      return NoRoomFor(object_.bytes(), object_.uri(),
                       std::filesystem::path(path_).parent_path().string());
    }
    return absl::ErrnoToStatus(error, path_);
  }

  absl::Status Write(uint64_t offset, absl::string_view left) const {
    while (!left.empty()) {
      const ssize_t n = pwrite(descriptor_, left.data(), left.size(),
                               static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return WriteError(errno);
      left.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  const StoredObject& object_;
  const std::string path_;
  const int descriptor_;
};

}  // namespace

bool IsWholeCopy(const std::string& path, uint64_t bytes) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         static_cast<uint64_t>(about.st_size) == bytes;
}

std::string UnfinishedCopy(const std::string& path) { return path + ".part"; }

absl::Status NoRoomFor(uint64_t bytes, absl::string_view of_what,
                       const std::string& folder) {
  return absl::InvalidArgumentError(absl::StrCat(
      "no room in ", folder, " for ", of_what, ": ", MebiBytes(bytes),
      " MiB are to be brought, and ", FreeBytes(folder) >> kShiftToMebi,
      " MiB are free; remove old copies there, or name a folder with more in "
      "--data_cache_dir"));
}

uint64_t FreeBytes(const std::string& folder) {
  struct statvfs disk = {};
  statvfs(folder.c_str(), &disk);
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

absl::Status WriteCopy(const StoredObject& object, const std::string& path,
                       size_t piece_bytes, size_t threads) {
  const std::string unfinished = UnfinishedCopy(path);
  constexpr mode_t kOwnersOnly = 0600;
  const Descriptor file(open(
      unfinished.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, kOwnersOnly));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, unfinished);
  const CopyWriter writer(object, unfinished, file.get());
  absl::Status status = writer.Reserve();
  if (status.ok()) status = writer.WriteAll(piece_bytes, threads);
  // The pieces may be of two versions.
  if (status.ok()) status = object.CheckIsSame();
  if (status.ok() && (fdatasync(file.get()) != 0 ||
                      rename(unfinished.c_str(), path.c_str()) != 0)) {
    status = absl::ErrnoToStatus(errno, unfinished);
  }
  // Its room may be what lacks.
  if (!status.ok()) unlink(unfinished.c_str());
  return status;
}

}  // namespace parasol
