#include "storage/rocksdb_status.h"

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

absl::StatusCode CodeOf(const rocksdb::Status& status) {
  if (status.IsNoSpace()) return absl::StatusCode::kResourceExhausted;
  if (status.IsPathNotFound()) return absl::StatusCode::kNotFound;
  if (status.IsIOError()) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kDataLoss;
}

}  // namespace

absl::Status FromRocksDbStatus(const rocksdb::Status& status,
                               absl::string_view path) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(CodeOf(status),
                      absl::StrCat(path, ": ", status.ToString()));
}

}  // namespace parasol
