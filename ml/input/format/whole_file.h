#ifndef PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
#define PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace parasol {

// Returns all bytes of a file, unpacked if it is gzip. A copy and not a
// mapping, because truncating a mapped file ends the process with SIGBUS. A
// plain file's memory is allocated at once; gzip's grows with the unpacked
// bytes.
//   ResourceExhausted  more than 1 TiB, or more than the memory: names it.
//   DataLoss           unreadable, or not whole gzip: names file and offset.
// The errors of InputFile::Open occur too.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
