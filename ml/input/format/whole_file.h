#ifndef PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
#define PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace parasol {

// All bytes of a file, unpacked if it is gzip. A copy and not a mapping: a file
// that is cut off while it is mapped ends the process with SIGBUS. A
// plain file's memory is taken at once, gzip's follows what is unpacked.
//   ResourceExhausted  more than 1 TiB, or than there is memory: names it.
//   DataLoss           unreadable, or not whole gzip: names file and offset.
// and the errors of InputFile::Open.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_WHOLE_FILE_H_
