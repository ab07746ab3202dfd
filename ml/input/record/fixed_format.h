#ifndef PARASOL_ML_INPUT_RECORD_FIXED_FORMAT_H_
#define PARASOL_ML_INPUT_RECORD_FIXED_FORMAT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "ml/input/record/record_format.h"

namespace parasol {

// Records of `record_bytes` each, one behind the other. Fewer at a file's end
// are a broken record.
class FixedFormat final : public RecordFormat {
 public:
  explicit FixedFormat(size_t record_bytes) : record_bytes_(record_bytes) {}

  absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                              const FilePart& part) override;
  FoundRecord Find(const FilePart& part, size_t at) const override;

 private:
  const size_t record_bytes_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_FIXED_FORMAT_H_
