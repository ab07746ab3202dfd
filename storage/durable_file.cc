#include "storage/durable_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/remote/remote_directory.h"
#include "storage/remote/remote_files.h"

namespace parasol {
namespace {

absl::StatusCode CodeOf(int code) {
  switch (code) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return absl::StatusCode::kResourceExhausted;
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// What is said of the limit that a file is beyond.
std::string LimitHint(int code) {
  struct rlimit limit;
  if (code != EFBIG || getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY) {
    return "";
  }
  return absl::StrCat(" (this process may write ", limit.rlim_cur,
                      " bytes to a file, RLIMIT_FSIZE: raise ulimit -f)");
}

absl::StatusCode CodeOfReading(int code) {
  switch (code) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    // Nothing that a writer of ours leaves, and nothing that passes.
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENXIO:
    case ENODEV:
    case ENAMETOOLONG:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status NotRegular(absl::string_view path) {
  return absl::DataLossError(absl::StrCat(path, ": is not a regular file"));
}

absl::Status WriteAll(const FileDescriptor& file, const std::string& path,
                      absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(errno, "write", path);
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status AppendBytes(const std::string& path, absl::string_view bytes,
                         bool is_durable) {
  if (IsUri(path)) {
    return AppendRemote(path, bytes, /*as_line=*/false, is_durable);
  }
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  RETURN_IF_ERROR(WriteAll(file, path, bytes));
  if (is_durable && fsync(file.get()) != 0) {
    return FileError(errno, "fsync", path);
  }
  return absl::OkStatus();
}

absl::Status AppendOneLine(const std::string& path, absl::string_view line,
                           bool is_durable, MayWrite may_write) {
  if (IsUri(path)) {
    return AppendRemote(path, absl::StrCat(line, "\n"), /*as_line=*/true,
                        is_durable, may_write);
  }
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::Open(path, O_RDWR | O_CREAT | O_APPEND));
  const off_t size = lseek(file.get(), 0, SEEK_END);
  if (size < 0) return FileError(errno, "seek in", path);
  char last = '\n';
  if (size > 0 && pread(file.get(), &last, 1, size - 1) < 0) {
    return FileError(errno, "read", path);
  }
  RETURN_IF_ERROR(
      WriteAll(file, path, absl::StrCat(last == '\n' ? "" : "\n", line, "\n")));
  if (is_durable && fsync(file.get()) != 0) {
    return FileError(errno, "fsync", path);
  }
  return absl::OkStatus();
}

// Returns the names in a folder of a store: of files, and of folders in it.
absl::StatusOr<std::vector<std::string>> NamesInRemote(
    const std::string& path) {
  ASSIGN_OR_RETURN(const RemoteListing listing, ListRemote(path));
  std::vector<std::string> names;
  for (const auto& [folder, files] : listing) {
    if (!folder.empty()) names.push_back(folder);
    if (!folder.empty()) continue;
    for (const auto& [name, bytes] : files) names.push_back(name);
  }
  return names;
}

}  // namespace

absl::Status FileError(int code, absl::string_view action,
                       absl::string_view path) {
  return absl::Status(CodeOf(code),
                      absl::StrCat("can't ", action, " ", path, ": ",
                                   std::strerror(code), LimitHint(code)));
}

absl::Status ReadError(int code, absl::string_view action,
                       absl::string_view path) {
  return absl::Status(
      CodeOfReading(code),
      absl::StrCat("can't ", action, " ", path, ": ", std::strerror(code)));
}

absl::StatusOr<FileDescriptor> FileDescriptor::Open(const std::string& path,
                                                    int flags, int mode) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC, mode);
  if (descriptor < 0) return FileError(errno, "open", path);
  return FileDescriptor(descriptor);
}

absl::StatusOr<FileDescriptor> FileDescriptor::OpenForReading(
    const std::string& path) {
  // To open a pipe would wait for its writer.
  const int opened =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) return ReadError(errno, "open", path);
  FileDescriptor file(opened);
  struct stat info;
  if (fstat(opened, &info) != 0) return ReadError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  return file;
}

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_bytes) {
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
    return files->Read(path, max_bytes);
  }
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(path));
  constexpr size_t kStep = 64 << 10;
  std::string contents;
  while (contents.size() <= max_bytes) {
    const size_t old_size = contents.size();
    const size_t want = std::min(kStep, max_bytes + 1 - old_size);
    contents.resize(old_size + want);
    const ssize_t got = read(file.get(), contents.data() + old_size, want);
    contents.resize(old_size + std::max<ssize_t>(got, 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(errno, "read", path);
    if (got == 0) break;
  }
  return contents;
}

absl::Status WriteFileDurably(const std::string& path,
                              absl::string_view contents) {
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
    return files->Write(path, contents);
  }
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_TRUNC));
  RETURN_IF_ERROR(WriteAll(file, path, contents));
  if (fsync(file.get()) != 0) return FileError(errno, "fsync", path);
  return absl::OkStatus();
}

absl::Status ReplaceFileDurably(const std::string& path,
                                absl::string_view contents) {
  if (IsUri(path)) return WriteFileDurably(path, contents);
  const std::string written = absl::StrCat(path, ".new");
  absl::Status status = WriteFileDurably(written, contents);
  if (status.ok()) status = Rename(written, path);
  if (!status.ok()) {
    unlink(written.c_str());
    return status;
  }
  const std::string parent = std::filesystem::path(path).parent_path();
  return SyncDirectory(parent.empty() ? "." : parent);
}

absl::Status AppendDurably(const std::string& path, absl::string_view bytes) {
  return AppendBytes(path, bytes, /*is_durable=*/true);
}

absl::Status Append(const std::string& path, absl::string_view bytes) {
  return AppendBytes(path, bytes, /*is_durable=*/false);
}

absl::Status AppendLineDurably(const std::string& path, absl::string_view line,
                               MayWrite may_write) {
  return AppendOneLine(path, line, /*is_durable=*/true, may_write);
}

absl::Status AppendLine(const std::string& path, absl::string_view line) {
  return AppendOneLine(path, line, /*is_durable=*/false, MayWriteAlways);
}

absl::Status SyncAppended(const std::string& path, MayWrite may_write) {
  if (IsUri(path)) return FlushRemote(path, may_write);
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::Open(path, O_WRONLY));
  if (fsync(file.get()) != 0) return FileError(errno, "fsync", path);
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& path) {
  if (IsUri(path)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FileDescriptor directory,
                   FileDescriptor::Open(path, O_RDONLY | O_DIRECTORY));
  // Some network file systems can't sync directories and need not.
  if (fsync(directory.get()) != 0 && errno != EINVAL) {
    return FileError(errno, "fsync", path);
  }
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  if (IsUri(path)) return absl::OkStatus();
  std::string made;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    const std::string parent = made.empty() ? "." : made;
    made = made.empty() ? part.string()
                        : (std::filesystem::path(made) / part).string();
    if (IsDirectory(made)) continue;
    // Another process may make it at the same time.
    const int failed = mkdir(made.c_str(), 0777) == 0 ? 0 : errno;
    if (failed != 0 && !(failed == EEXIST && IsDirectory(made))) {
      const absl::Status status =
          FileError(failed == EEXIST ? ENOTDIR : failed, "make", path);
      if (made == path) return status;
      return absl::Status(status.code(),
                          absl::StrCat(status.message(), " (", made, ")"));
    }
    RETURN_IF_ERROR(SyncDirectory(parent));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::string& path) {
  if (IsUri(path)) return NamesInRemote(path);
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error && error.value() != ENOENT && error.value() != ENOTDIR) {
    return absl::UnavailableError(
        absl::StrCat("can't list ", path, ": ", std::strerror(error.value())));
  }
  if (error) return FileError(error.value(), "list", path);
  return names;
}

absl::Status RemoveTree(const std::string& path) {
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
    return files->RemoveFolder(path);
  }
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return FileError(error.value(), "remove", path);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  if (IsUri(path)) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(path));
    ASSIGN_OR_RETURN(const RemoteFiles::About about, files->Look(path));
    return about.bytes;
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ReadError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  return static_cast<uint64_t>(info.st_size);
}

bool IsDirectory(const std::string& path) {
  if (IsUri(path)) return true;
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return FileError(errno, absl::StrCat("rename ", from, " to"), to);
  }
  return absl::OkStatus();
}

absl::Status Link(const std::string& from, const std::string& to) {
  if (IsUri(from)) {
    return absl::UnimplementedError(
        absl::StrCat(from, ": a store has one name for a file"));
  }
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS ||
      errno == EXDEV) {
    return absl::UnimplementedError(absl::StrCat(
        "can't link ", from, " as ", to, ": ", std::strerror(errno)));
  }
  return FileError(errno, absl::StrCat("link ", from, " as"), to);
}

absl::Status Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) ==
      0) {
    return absl::OkStatus();
  }
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ||
      errno == EXDEV) {
    return absl::UnimplementedError(absl::StrCat(
        "can't exchange ", a, " and ", b, ": ", std::strerror(errno)));
  }
  return FileError(errno, absl::StrCat("exchange ", a, " and"), b);
}

}  // namespace parasol
