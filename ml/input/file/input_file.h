#ifndef PARASOL_ML_INPUT_FILE_INPUT_FILE_H_
#define PARASOL_ML_INPUT_FILE_INPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// A file of examples, read from its start to its end. One that IsGzip() by its
// first bytes is unpacked on the way, whatever its name is. Of an object of a
// store, which a URI names, and which BringFiles() has not brought, the bytes
// are read in the store.
class InputFile {
 public:
  // Opens the file.
  //   NotFound         there is no such file.
  //   InvalidArgument  it is a directory, a pipe, …
  //   any other        the system's error; as for ObjectCache::Open().
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);
  virtual ~InputFile() = default;

  // Fills `out`, or only a part of it at the end of the file, and returns the
  // number of bytes written.
  //   DataLoss     not whole gzip; an object that has changed.
  //   Unavailable  the disk, or a store, refuses: another try may succeed.
  // Both name the file and the offset in it (in the packed bytes).
  virtual absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) = 0;

  // Number of bytes on disk when the file was opened; packed bytes for gzip.
  virtual size_t stored_bytes() const = 0;
  virtual bool is_packed() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_INPUT_FILE_H_
