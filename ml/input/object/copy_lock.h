#ifndef PARASOL_ML_INPUT_OBJECT_COPY_LOCK_H_
#define PARASOL_ML_INPUT_OBJECT_COPY_LOCK_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"

namespace parasol {

// The right to write one file, among the processes and threads of a machine: a
// lock of the file "<path>.lock", which says who has it and is gone when it is
// given back. It ends with its process, however that ends. Move-only.
class CopyLock {
 public:
  struct Wait {
    std::string what;  // Name of the file in messages
    // How long the file may stay as it is while another process has the lock.
    absl::Duration patience;
    Clock* clock;
  };

  // Waits for the right to write the file at `path`, and logs for whom.
  //   Unavailable  the other process did not go on: names it.
  //   any other    the system's error; names the file.
  static absl::StatusOr<CopyLock> Take(const std::string& path,
                                       const Wait& wait);

  // Returns nullopt if another has the right.
  static absl::StatusOr<std::optional<CopyLock>> TryTake(
      const std::string& path);

  CopyLock(CopyLock&& other) = default;
  ~CopyLock();

 private:
  CopyLock(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;  // Path of the lock's file
  Descriptor descriptor_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_COPY_LOCK_H_
