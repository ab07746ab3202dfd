#ifndef PARASOL_ML_INPUT_FORMAT_IDX_READER_H_
#define PARASOL_ML_INPUT_FORMAT_IDX_READER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/file/stored_file.h"

namespace parasol {

struct IdxImages {
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;  // [count, height, width]
  int64_t announced = 0;        // images that the file has
};

struct IdxLabels {
  std::vector<uint8_t> labels;
  int64_t announced = 0;  // labels that the file has
};

// Both functions read a file of images or of labels, plain or .gz: whole, or of
// a sample the first elements, as many as `max_bytes` have room for. Memory
// follows the bytes that are there, not the number that the header announces.
//   DataLoss         wrong magic, cut off, too long, or corrupt gzip: names the
//                    file and the offset in the unpacked bytes (in the packed
//                    ones for corrupt gzip).
//   InvalidArgument  it is of another format (known_format.h), or does not fit
//                    the memory.
// The errors of InputFile::Open occur too.
absl::StatusOr<IdxImages> ReadIdxImages(
    const std::string& path,
    int64_t max_bytes = std::numeric_limits<int64_t>::max());
absl::StatusOr<IdxLabels> ReadIdxLabels(
    const std::string& path,
    int64_t max_bytes = std::numeric_limits<int64_t>::max());

// Returns the header of a file of images, without pixels. Errors as for
// ReadIdxImages().
absl::StatusOr<IdxImages> ReadIdxImagesHeader(const std::string& path);

// Opens the pixels of a file of images as a file of their own, which stays on
// the disk.
//   DataLoss   the file is cut off or too long, or corrupt gzip.
//   any other  as for StoredFiles::Open().
absl::StatusOr<StoredFile> OpenIdxPixels(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IDX_READER_H_
