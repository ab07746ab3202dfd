#include "storage/tensor_files/sized_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<SizedFile> SizedFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileDescriptor file, FileDescriptor::OpenForReading(path));
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ReadError(errno, "stat", path);
  return SizedFile(path, std::move(file), static_cast<uint64_t>(info.st_size));
}

SizedFile::SizedFile(std::string path, FileDescriptor file, uint64_t size)
    : path_(std::move(path)), file_(std::move(file)), size_(size) {}

absl::Status SizedFile::Read(uint64_t offset, absl::Span<char> out) const {
  RETURN_IF_ERROR(CheckInside(offset, out.size()));
  while (!out.empty()) {
    const ssize_t got =
        pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(errno, "read", path_);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": became shorter"));
    }
    out.remove_prefix(got);
    offset += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> SizedFile::Read(uint64_t offset,
                                            uint64_t count) const {
  RETURN_IF_ERROR(CheckInside(offset, count));
  std::string bytes(count, '\0');
  RETURN_IF_ERROR(Read(offset, absl::MakeSpan(bytes)));
  return bytes;
}

absl::Status SizedFile::CheckInside(uint64_t offset, uint64_t count) const {
  if (offset <= size_ && count <= size_ - offset) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path_, ": has ", size_, " bytes; ",
                                          count, " from byte ", offset,
                                          " on are not all there"));
}

}  // namespace parasol
