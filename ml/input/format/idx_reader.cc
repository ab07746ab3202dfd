#include "ml/input/format/idx_reader.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/format/idx_format.h"
#include "ml/input/format/input_file.h"

namespace parasol {
namespace {

// Number of bytes allocated before the file has shown that it has as many.
constexpr int64_t kFirstAllocation = 1 << 20;

// Takes fields off an IDX file and knows where it is.
class IdxFields {
 public:
  IdxFields(const std::string& path, InputFile& file)
      : path_(path), file_(file) {}

  absl::Status Corrupt(int64_t offset, absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(path_, " at byte ", offset, ": ", what));
  }

  absl::StatusOr<uint32_t> Number(absl::string_view what) {
    uint8_t bytes[4];
    ASSIGN_OR_RETURN(const size_t n, file_.Read(absl::MakeSpan(bytes)));
    if (n < sizeof(bytes)) {
      return Corrupt(offset_ + n, absl::StrCat("ends within the ", what));
    }
    offset_ += n;
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
           uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
  }

  absl::Status Magic(uint32_t want) {
    ASSIGN_OR_RETURN(const uint32_t magic, Number("magic number"));
    if (magic == want) return absl::OkStatus();
    return Corrupt(0, absl::StrCat("magic number is ", magic, ", not ", want));
  }

  // The rest of the file, which must be `size` bytes.
  absl::StatusOr<std::vector<uint8_t>> Rest(int64_t size) {
    std::vector<uint8_t> bytes;
    int64_t filled = 0;
    while (filled < size) {
      // 2 * filled cannot overflow: it is memory that there is.
      bytes.resize(std::min(size, std::max(kFirstAllocation, 2 * filled)));
      ASSIGN_OR_RETURN(const size_t n,
                       file_.Read(absl::MakeSpan(bytes).subspan(filled)));
      filled += n;
      if (filled < static_cast<int64_t>(bytes.size())) {
        return Corrupt(offset_ + filled,
                       absl::StrCat("ends early: the header announces ", size,
                                    " bytes after byte ", offset_));
      }
    }
    uint8_t extra;
    ASSIGN_OR_RETURN(const size_t n, file_.Read(absl::MakeSpan(&extra, 1)));
    if (n > 0) return Corrupt(offset_ + size, "goes on after the last element");
    return bytes;
  }

  int64_t offset() const { return offset_; }

 private:
  const std::string& path_;
  InputFile& file_;
  int64_t offset_ = 0;
};

}  // namespace

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  RETURN_IF_ERROR(fields.Magic(kIdxImagesMagic));
  IdxImages images;
  ASSIGN_OR_RETURN(images.count, fields.Number("number of images"));
  ASSIGN_OR_RETURN(images.height, fields.Number("height"));
  ASSIGN_OR_RETURN(images.width, fields.Number("width"));
  int64_t rows;
  int64_t pixels;
  if (images.height == 0 || images.width == 0 ||
      __builtin_mul_overflow(images.count, images.height, &rows) ||
      __builtin_mul_overflow(rows, images.width, &pixels)) {
    return fields.Corrupt(
        4, absl::StrCat("the header announces ", images.count, " images of ",
                        images.height, " x ", images.width,
                        ", which no file can hold"));
  }
  ASSIGN_OR_RETURN(images.pixels, fields.Rest(pixels));
  return images;
}

absl::StatusOr<std::vector<uint8_t>> ReadIdxLabels(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  RETURN_IF_ERROR(fields.Magic(kIdxLabelsMagic));
  ASSIGN_OR_RETURN(const int64_t count, fields.Number("number of labels"));
  return fields.Rest(count);
}

}  // namespace parasol
