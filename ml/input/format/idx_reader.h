#ifndef PARASOL_ML_INPUT_FORMAT_IDX_READER_H_
#define PARASOL_ML_INPUT_FORMAT_IDX_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace parasol {

struct IdxImages {
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // [count, height, width]
};

// Both functions read a file of images or of labels whole, plain or .gz. Memory
// follows the bytes that are there, not the number that the header announces.
//   DataLoss  wrong magic, cut off, too long, or corrupt gzip: names the file
//             and the offset in the unpacked bytes (in the packed ones for
//             corrupt gzip).
// The errors of InputFile::Open occur too.
absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path);
absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IDX_READER_H_
