#ifndef PARASOL_STORAGE_TENSOR_FILES_SIZED_FILE_H_
#define PARASOL_STORAGE_TENSOR_FILES_SIZED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/durable_file.h"

namespace parasol {

// A file of known size that is read at any place; nothing outside of it is
// asked for. Move-only; thread-safe.
class SizedFile {
 public:
  // Errors as for FileDescriptor::OpenForReading().
  static absl::StatusOr<SizedFile> Open(const std::string& path);

  // Fills `out` with the bytes from `offset` on.
  //   DataLoss     they are not all in the file.
  //   Unavailable  the file system refuses.
  absl::Status Read(uint64_t offset, absl::Span<char> out) const;
  // Returns `count` bytes. `count` may come from the file: nothing is allocated
  // for bytes that are not there. Errors as for the function above.
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t count) const;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

 private:
  SizedFile(std::string path, FileDescriptor file, uint64_t size);
  absl::Status CheckInside(uint64_t offset, uint64_t count) const;

  std::string path_;
  FileDescriptor file_;
  uint64_t size_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_SIZED_FILE_H_
