#ifndef PARASOL_ML_INPUT_FORMAT_INPUT_FILE_H_
#define PARASOL_ML_INPUT_FORMAT_INPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// A file of examples, read from its start to its end. What its first bytes
// show to be gzip is unpacked on the way, whatever the file is called.
class InputFile {
 public:
  //   NotFound         there is no such file.
  //   InvalidArgument  it is a directory, a pipe, …
  // and what the system says otherwise.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(
      const std::string& path);
  virtual ~InputFile() = default;

  // Fills `out`, or less of it where the file ends, and returns how many bytes
  // it wrote.
  //   DataLoss  unreadable or not whole gzip: names the file and the offset in
  //             it (of the packed bytes).
  virtual absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) = 0;

  // Bytes on disk when it was opened: of gzip the packed ones.
  virtual size_t stored_bytes() const = 0;
  virtual bool is_packed() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_INPUT_FILE_H_
