#ifndef PARASOL_STORAGE_DIRECTORY_LOCK_H_
#define PARASOL_STORAGE_DIRECTORY_LOCK_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/durable_file.h"

namespace parasol {

// A lock on a directory, held until the object is destroyed or the process
// ends. Processes that use a checkpoint directory hold it shared; the launcher
// takes it exclusively before it removes the directory of an old run. It is
// advisory (flock(2)) and does not change the directory. Move-only.
class DirectoryLock {
 public:
  // Locks the directory against removal. Returns a lock that locks nothing on a
  // file system without locks.
  //   Unavailable  another process is removing the directory.
  //   any other    the directory can't be opened.
  static absl::StatusOr<DirectoryLock> Share(const std::string& directory);

  // Locks the directory against every other use; nullopt if another process, or
  // another object of this one, has locked it, or if it can't be locked.
  static std::optional<DirectoryLock> TryExclude(const std::string& directory);

 private:
  explicit DirectoryLock(FileDescriptor directory)
      : directory_(std::move(directory)) {}

  FileDescriptor directory_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_DIRECTORY_LOCK_H_
