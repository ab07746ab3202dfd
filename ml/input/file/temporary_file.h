#ifndef PARASOL_ML_INPUT_FILE_TEMPORARY_FILE_H_
#define PARASOL_ML_INPUT_FILE_TEMPORARY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace parasol {

// A file without a name in the folder for temporary files (TMPDIR, or /tmp),
// for bytes that were unpacked. It is gone with its owner, also after kill -9.
// Append() is for one thread; its descriptor may be read by any.
class TemporaryFile {
 public:
  //   InvalidArgument  as for Append().
  //   any other        the system's error; names the folder.
  static absl::StatusOr<TemporaryFile> Create();

  // Adds bytes at the end.
  //   InvalidArgument  the disk is full: names the folder and its room.
  //   any other        the system's error.
  absl::Status Append(absl::string_view bytes);

  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  TemporaryFile(std::string folder, Descriptor descriptor);

  std::string folder_;
  Descriptor descriptor_;
  uint64_t size_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_TEMPORARY_FILE_H_
