#ifndef PARASOL_ML_INPUT_FORMAT_IDX_WRITER_H_
#define PARASOL_ML_INPUT_FORMAT_IDX_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/input/format/idx_reader.h"

namespace parasol {

// The bytes of an IDX file that ReadIdxImages and ReadIdxLabels read.
std::string IdxImagesFile(const IdxImages& images);
std::string IdxLabelsFile(absl::Span<const uint8_t> labels);

// Returns `bytes` as a .gz file, packed lightly: an IDX file is read more often
// than it is sent.
std::string Gzip(absl::string_view bytes);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IDX_WRITER_H_
