#ifndef PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
#define PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace parasol {

// Returns all bytes of a file, unpacked if it is gzip. A copy and not a
// mapping, because truncating a mapped file ends the process with SIGBUS. A
// plain file's memory is allocated at once; gzip's grows with the unpacked
// bytes.
//   InvalidArgument  more than 1 TiB, or more than the memory that is free:
//                    says how much both are.
// The errors of InputFile occur too.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// The first bytes of a file, up to a limit.
struct FileStart {
  std::string bytes = {};
  bool is_whole = true;  // the file has no more
};

// Returns the first `max_bytes` of a file, unpacked if it is gzip. Errors as
// for ReadWholeFile().
absl::StatusOr<FileStart> ReadFileStart(const std::string& path,
                                        size_t max_bytes);

// Returns OK if `bytes` of the file at `path` can be taken into memory, of
// which `available` are free; nullopt: that is not known.
//   InvalidArgument  they can't.
absl::Status CheckFitsMemory(const std::string& path, size_t bytes,
                             std::optional<int64_t> available);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
