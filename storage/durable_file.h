#ifndef PARASOL_STORAGE_DURABLE_FILE_H_
#define PARASOL_STORAGE_DURABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "storage/remote/remote_files.h"

// Functions on POSIX files, with errors that name the path:
//   NotFound           no such file or directory.
//   PermissionDenied   not allowed, or a read-only file system.
//   ResourceExhausted  no space, quota or file descriptors left.
//   InvalidArgument    a file where a directory belongs, or the reverse.
//   Unavailable        any other error of the file system.
// Paths may be URIs of a store, which has whole files alone: it appends by
// writing them anew, has any directory, and gives no file another name. Their
// errors are the errors of RemoteFiles (storage/remote).
// Functions that read files say less, so that a caller can tell damage from
// trouble that passes: see OpenForReading().
namespace parasol {

// Returns the error for `code`, the errno of doing `action` ("write") to
// `path`.
absl::Status FileError(int code, absl::string_view action,
                       absl::string_view path);

// An open file, closed with the object. Move-only.
class FileDescriptor {
 public:
  // Opens the file at `path` with open(2)'s `flags` and `mode`, and O_CLOEXEC.
  static absl::StatusOr<FileDescriptor> Open(const std::string& path, int flags,
                                             int mode = 0644);
  // Opens a regular file for reading. Never waits, whatever is at `path`.
  //   NotFound     there is no such file.
  //   DataLoss     something else than a regular file is there: a directory, a
  //                pipe, a device, or a file where a parent directory belongs.
  //   Unavailable  any other error; the file may be intact.
  static absl::StatusOr<FileDescriptor> OpenForReading(const std::string& path);

  int get() const { return descriptor_.get(); }

 private:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor descriptor_;
};

// Returns the error for `code`, the errno of doing `action` to `path`, which
// was to be read. Its code is one of FileDescriptor::OpenForReading().
absl::Status ReadError(int code, absl::string_view action,
                       absl::string_view path);

// Returns the contents of the file, but at most `max_bytes` + 1 bytes, so that
// the caller sees that the file is too large. Fails as
// FileDescriptor::OpenForReading() does.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes);

// Creates or replaces the file and fsyncs it, so that its bytes survive a
// crash. The file's name survives only after SyncDirectory().
absl::Status WriteFileDurably(const std::string& path,
                              absl::string_view contents);

// Replaces the file at once: a reader, also after a crash, finds the old bytes
// or the new ones. Writes them to a file beside it, "<path>.new", first, which
// does not stay after an error.
absl::Status ReplaceFileDurably(const std::string& path,
                                absl::string_view contents);

// Appends `bytes` to the file with one write, so that no other writer's bytes
// come between them, and fsyncs it. Creates the file if it is missing.
absl::Status AppendDurably(const std::string& path, absl::string_view bytes);

// Appends `bytes` as AppendDurably() does, but without fsync: the bytes survive
// the process, but perhaps not the machine.
absl::Status Append(const std::string& path, absl::string_view bytes);

// Appends `line`, which has no newline, and a newline as AppendDurably() does.
// A line before it that was cut off, by a full disk or a crash, stays a line of
// its own. In a store, where that rewrites the file, each attempt asks
// `may_write` first: an owner's, which returns an error if another process owns
// the directory now.
absl::Status AppendLineDurably(const std::string& path, absl::string_view line,
                               MayWrite may_write = MayWriteAlways);

// Appends `line` as AppendLineDurably() does, but without fsync.
absl::Status AppendLine(const std::string& path, absl::string_view line);

// Makes what was appended to a file survive a crash: in a store it is not there
// before, and after an error it waits for the next call. Asks `may_write` as
// AppendLineDurably() does.
absl::Status SyncAppended(const std::string& path,
                          MayWrite may_write = MayWriteAlways);

// Makes the names in a directory survive a crash (fsync).
absl::Status SyncDirectory(const std::string& path);

// Makes a directory with its parents; it may be there. The names that it makes
// survive a crash.
absl::Status MakeDirectories(const std::string& path);

// Returns the names in a directory, unsorted, without "." and "..".
//   NotFound         there is no such directory.
//   InvalidArgument  it is not a directory.
//   Unavailable      any other error; the names may be intact.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Removes a directory and everything in it. Returns OK if it does not exist.
absl::Status RemoveTree(const std::string& path);

// Returns the size of a regular file. Fails as FileDescriptor::OpenForReading()
// does.
absl::StatusOr<uint64_t> FileSize(const std::string& path);
bool IsDirectory(const std::string& path);

absl::Status Rename(const std::string& from, const std::string& to);

// Gives the file at `from` another name, `to`, on the same file system (a hard
// link). What one name's bytes are, the other's are.
//   Unimplemented  the file system can't do this, or `to` is on another one.
absl::Status Link(const std::string& from, const std::string& to);

// Exchanges the names of two paths atomically.
//   Unimplemented  the file system can't do this.
absl::Status Exchange(const std::string& a, const std::string& b);

}  // namespace parasol

#endif  // PARASOL_STORAGE_DURABLE_FILE_H_
