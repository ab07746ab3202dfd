#ifndef PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_
#define PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Number of first bytes of a file by which formats are told apart.
inline constexpr size_t kKnownFormatBytes = 512;

// Number of bytes that a TFRecord file has before the first record.
inline constexpr size_t kTfRecordHeaderBytes = 12;

// Returns true if `start` begins with the length of a TFRecord file's record
// and the checksum of that. Pure.
bool HasTfRecordHeader(absl::string_view start);

// Returns true if a file that begins with `start`, its first
// kTfRecordHeaderBytes or all that it has, is packed by gzip. The first record
// of a TFRecord file may have a length of the same bytes. Pure.
bool IsGzip(absl::string_view start);

// Returns what a file that begins with `start` is, and what to do with it, if
// it is of a format that no data set has: "is a zip archive; unpack it". "" if
// it may be a data set's. `is_text`: of a data set of lines, which has other
// beginnings than binary ones. Pure.
std::string KnownFormat(absl::string_view start, bool is_text);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_KNOWN_FORMAT_H_
