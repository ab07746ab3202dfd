#include "storage/tensor_files/staged_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Small pieces are collected up to this.
constexpr size_t kBufferBytes = 256 << 10;

// Renaming over a device would take it away from all who use it.
absl::Status CheckMayBeReplaced(const std::string& path) {
  std::error_code error;
  const auto there = std::filesystem::symlink_status(path, error);
  if (error || !std::filesystem::exists(there) ||
      std::filesystem::is_regular_file(there) ||
      std::filesystem::is_symlink(there)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is there and is no file; name a file that may be replaced"));
}

std::string ParentOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

// The name under which the system knows an open file.
std::string PathOf(const FileDescriptor& file) {
  return absl::StrCat("/proc/self/fd/", file.get());
}

// Opens a file without a name that can be given one.
absl::StatusOr<FileDescriptor> OpenUnnamed(const std::string& directory) {
  ASSIGN_OR_RETURN(FileDescriptor file,
                   FileDescriptor::Open(directory, O_WRONLY | O_TMPFILE));
  std::error_code error;
  if (std::filesystem::exists(PathOf(file), error)) return file;
  return absl::UnimplementedError("/proc is not there");
}

}  // namespace

std::string StagedNameOf(const std::string& path) {
  static std::atomic<int> number = 0;
  return absl::StrCat(path, ".", getpid(), "-", number++, ".new");
}

absl::StatusOr<StagedFile> StagedFile::Create(const std::string& path) {
  RETURN_IF_ERROR(CheckMayBeReplaced(path));
  RETURN_IF_ERROR(MakeDirectories(ParentOf(path)));
  absl::StatusOr<FileDescriptor> unnamed = OpenUnnamed(ParentOf(path));
  if (unnamed.ok()) return StagedFile(path, "", *std::move(unnamed));
  std::string staged = StagedNameOf(path);
  absl::StatusOr<FileDescriptor> file =
      FileDescriptor::Open(staged, O_WRONLY | O_CREAT | O_EXCL);
  if (file.ok()) return StagedFile(path, std::move(staged), *std::move(file));
  return absl::Status(
      file.status().code(),
      absl::StrReplaceAll(file.status().message(), {{staged, path}}));
}

StagedFile::StagedFile(std::string path, std::string staged_path,
                       FileDescriptor file)
    : path_(std::move(path)),
      staged_path_(std::move(staged_path)),
      file_(std::move(file)) {}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::move(other.path_)),
      staged_path_(std::exchange(other.staged_path_, {})),
      file_(std::move(other.file_)),
      buffer_(std::move(other.buffer_)),
      written_(other.written_) {}

StagedFile::~StagedFile() {
  if (!staged_path_.empty()) unlink(staged_path_.c_str());
}

absl::Status StagedFile::Append(absl::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    RETURN_IF_ERROR(Flush());
  }
  if (bytes.size() <= kBufferBytes) {
    absl::StrAppend(&buffer_, bytes);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WriteAt(written_, bytes));
  written_ += bytes.size();
  return absl::OkStatus();
}

absl::Status StagedFile::Overwrite(uint64_t offset, absl::string_view bytes) {
  RETURN_IF_ERROR(Flush());
  return WriteAt(offset, bytes);
}

absl::Status StagedFile::Commit() {
  RETURN_IF_ERROR(Flush());
  if (fsync(file_.get()) != 0) return FileError(errno, "fsync", path_);
  if (staged_path_.empty()) {
    // A link can't replace a file; a renamed one can.
    const std::string staged = StagedNameOf(path_);
    if (linkat(AT_FDCWD, PathOf(file_).c_str(), AT_FDCWD, staged.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
      return FileError(errno, "name", path_);
    }
    staged_path_ = staged;
  }
  RETURN_IF_ERROR(Rename(staged_path_, path_));
  staged_path_.clear();
  return SyncDirectory(ParentOf(path_));
}

absl::Status StagedFile::Flush() {
  RETURN_IF_ERROR(WriteAt(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status StagedFile::WriteAt(uint64_t offset, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "write", path_);
    bytes.remove_prefix(written);
    offset += written;
  }
  return absl::OkStatus();
}

}  // namespace parasol
