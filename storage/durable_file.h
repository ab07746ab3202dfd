#ifndef PARASOL_STORAGE_DURABLE_FILE_H_
#define PARASOL_STORAGE_DURABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// POSIX files, with errors that name the path:
//   NotFound           no such file or directory.
//   PermissionDenied   not allowed, or a read-only file system.
//   ResourceExhausted  no space, quota or file descriptors left.
//   InvalidArgument    a file where a directory belongs, or the reverse.
//   Unavailable        any other error of the file system.
namespace parasol {

// The error `code` (an errno) met while doing something ("write") to `path`.
absl::Status FileError(int code, absl::string_view action,
                       absl::string_view path);

// An open file descriptor, closed with the object. Move-only.
class FileDescriptor {
 public:
  // `flags` and `mode` as for open(2); O_CLOEXEC is added.
  static absl::StatusOr<FileDescriptor> Open(const std::string& path, int flags,
                                             int mode = 0644);
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int get() const { return descriptor_; }

 private:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// The whole file; at most `max_bytes` + 1 of it, so that a caller sees that it
// is too large.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Creates or replaces the file and fsyncs it: its bytes survive a crash. Its
// name does after SyncDirectory().
absl::Status WriteFileDurably(const std::string& path,
                              absl::string_view contents);

// Adds `bytes` to the file's end with one write, so that no other writer's come
// between them, and fsyncs it. Creates the file where it is missing.
absl::Status AppendDurably(const std::string& path, absl::string_view bytes);

// Makes the names in a directory survive a crash.
absl::Status SyncDirectory(const std::string& path);

// The names in a directory, unsorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Removes a directory and all in it; OK when it is not there.
absl::Status RemoveTree(const std::string& path);

absl::StatusOr<uint64_t> FileSize(const std::string& path);
bool IsDirectory(const std::string& path);

absl::Status Rename(const std::string& from, const std::string& to);

// Gives each of two paths the other's name, atomically.
//   Unimplemented  this file system can't.
absl::Status Exchange(const std::string& a, const std::string& b);

}  // namespace parasol

#endif  // PARASOL_STORAGE_DURABLE_FILE_H_
