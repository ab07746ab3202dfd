// A data source of one's own: files of vectors in the TEXMEX corpus's format
// (http://corpus-texmex.irisa.fr),
//
//   file = (width:i32 (number:f32)^width)*      little-endian, width ≥ 2
//
// with the same width everywhere. The last number of a vector is the column
// "label", the others are the column "vector". A corrupt file is an error at
// once, whatever the job's on_corrupt is.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/custom/custom_parameters.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/custom_source.h"
#include "ml/input/format/whole_file.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

class Fvecs : public ExampleSource {
 public:
  // Adds the vectors of a file.
  absl::Status AddFile(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
    for (size_t at = 0; at < bytes.size();) {
      int32_t width = 0;
      if (bytes.size() - at >= sizeof width) {
        std::memcpy(&width, &bytes[at], sizeof width);
      }
      if (width < 2 || (width_ != 0 && width != width_)) {
        return absl::DataLossError(absl::StrCat(
            path, " at byte ", at, ": a vector of ", width, " numbers, not ",
            width_ == 0 ? "2 or more" : absl::StrCat(width_)));
      }
      width_ = width;
      const size_t length = width * sizeof(float);
      at += sizeof width;
      if (bytes.size() - at < length) {
        return absl::DataLossError(
            absl::StrCat(path, " at byte ", at, ": ends within a vector"));
      }
      numbers_.resize(numbers_.size() + width);
      std::memcpy(&numbers_[numbers_.size() - width], &bytes[at], length);
      at += length;
    }
    const size_t examples = width_ == 0 ? 0 : numbers_.size() / width_;
    starts_.push_back(static_cast<int64_t>(examples));
    return absl::OkStatus();
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::string label() const override { return "label"; }
  const std::vector<int64_t>& file_starts() const override { return starts_; }

  std::unique_ptr<Reader> NewReader() const override {
    return std::make_unique<VectorReader>(*this);
  }

 private:
  class VectorReader : public Reader {
   public:
    explicit VectorReader(const Fvecs& set) : set_(set) {}

    absl::Status Read(int64_t example, ColumnValues& row) override {
      const float* const vector = &set_.numbers_[example * set_.width_];
      for (int32_t i = 0; i + 1 < set_.width_; ++i) {
        row[0].push_back(FieldValue::Real(vector[i]));
      }
      row[1].push_back(FieldValue::Real(vector[set_.width_ - 1]));
      return absl::OkStatus();
    }

   private:
    const Fvecs& set_;
  };

  const std::vector<std::string> columns_ = {"vector", "label"};
  int32_t width_ = 0;
  std::vector<float> numbers_;  // [examples, width_]
  std::vector<int64_t> starts_ = {0};
};

absl::StatusOr<std::unique_ptr<const ExampleSource>> OpenFvecs(
    const job::CustomDataset& spec, const SourceOptions& options) {
  RETURN_IF_ERROR(CustomParameters(spec.parameter()).CheckAllRead());
  if (options.files.empty()) {
    return absl::InvalidArgumentError("custom.file is not set");
  }
  auto set = std::make_unique<Fvecs>();
  for (const std::string& path : options.files) {
    RETURN_IF_ERROR(set->AddFile(path));
  }
  return set;
}

const ExampleSourceRegistration kRegistration("fvecs", OpenFvecs);

}  // namespace
}  // namespace parasol
