#ifndef PARASOL_STORAGE_ROCKSDB_STATUS_H_
#define PARASOL_STORAGE_ROCKSDB_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "rocksdb/status.h"

namespace parasol {

// Converts RocksDB's status about the file at `path`; the message names the
// file.
//   DataLoss           its bytes are no SST file.
//   ResourceExhausted  no space, quota or file descriptors left, or a file that
//                      is larger than its limit.
//   PermissionDenied   not allowed, or a read-only file system.
//   NotFound           no such file or directory.
//   Unavailable        any other error of the file system.
absl::Status FromRocksDbStatus(const rocksdb::Status& status,
                               absl::string_view path);

}  // namespace parasol

#endif  // PARASOL_STORAGE_ROCKSDB_STATUS_H_
