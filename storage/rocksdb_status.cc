#include "storage/rocksdb_status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// Errors of a file system that don't pass by themselves. RocksDB keeps neither
// their errno nor a code of its own for them: its text ends with the system's.
constexpr int kLastingErrors[] = {ENOSPC, EDQUOT, EFBIG,  EROFS,
                                  EACCES, EPERM,  EMFILE, ENFILE};

absl::StatusCode CodeOf(const rocksdb::Status& status, absl::string_view path) {
  if (status.IsNoSpace()) return absl::StatusCode::kResourceExhausted;
  if (status.IsPathNotFound()) return absl::StatusCode::kNotFound;
  if (!status.IsIOError()) return absl::StatusCode::kDataLoss;
  const std::string text = status.ToString();
  for (const int error : kLastingErrors) {
    if (absl::EndsWith(text, std::strerror(error))) {
      return FileError(error, "write", path).code();
    }
  }
  return absl::StatusCode::kUnavailable;
}

}  // namespace

absl::Status FromRocksDbStatus(const rocksdb::Status& status,
                               absl::string_view path) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(CodeOf(status, path),
                      absl::StrCat(path, ": ", status.ToString()));
}

}  // namespace parasol
