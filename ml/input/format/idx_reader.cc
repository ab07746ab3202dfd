#include "ml/input/format/idx_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/file/available_memory.h"
#include "ml/input/file/input_file.h"
#include "ml/input/file/stored_files.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/idx_format.h"
#include "ml/input/format/whole_file.h"

namespace parasol {
namespace {

// Number of bytes allocated before the file has shown that it has as many.
constexpr int64_t kFirstAllocation = 1 << 20;
// Number of bytes that are taken without asking the system.
constexpr int64_t kSmall = 16 << 20;
// Gzip makes no more bytes of one.
constexpr int64_t kMaxGzipRatio = 1032;

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
    const char start[] = {
        static_cast<char>(magic >> 24), static_cast<char>(magic >> 16),
        static_cast<char>(magic >> 8), static_cast<char>(magic)};
    RETURN_IF_ERROR(CheckFormat(path_, {start, sizeof(start)},
                                /*is_text=*/false));
    return Corrupt(0, absl::StrCat("magic number is ", magic, ", not ", want));
  }

  // The rest of the file, which must be `size` bytes.
  absl::StatusOr<std::vector<uint8_t>> Rest(int64_t size) {
    ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, Next(size));
    uint8_t extra;
    ASSIGN_OR_RETURN(const size_t n, file_.Read(absl::MakeSpan(&extra, 1)));
    if (n > 0) return GoesOn(size);
    return bytes;
  }

  absl::Status GoesOn(int64_t size) const {
    return Corrupt(offset_ + size, "goes on after the last element");
  }

  // The file has `there` of the next `size` bytes.
  absl::Status EndsEarly(int64_t size, int64_t there) const {
    return Corrupt(offset_ + there,
                   absl::StrCat("ends early: the header announces ", size,
                                " bytes after byte ", offset_));
  }

  // The next `size` bytes.
  absl::StatusOr<std::vector<uint8_t>> Next(int64_t size) {
    RETURN_IF_ERROR(CheckAnnounced(size));
    std::vector<uint8_t> bytes;
    int64_t filled = 0;
    while (filled < size) {
      // 2 * filled cannot overflow: it is memory that there is.
      const int64_t more =
          std::min(size, std::max(kFirstAllocation, 2 * filled));
      if (more > kSmall) {
        RETURN_IF_ERROR(CheckFitsMemory(path_, more, AvailableMemory()));
      }
      bytes.resize(more);
      ASSIGN_OR_RETURN(const size_t n,
                       file_.Read(absl::MakeSpan(bytes).subspan(filled)));
      filled += n;
      if (filled < static_cast<int64_t>(bytes.size())) {
        return EndsEarly(size, filled);
      }
    }
    return bytes;
  }

  int64_t offset() const { return offset_; }

 private:
  // Refuses at once what can't be there, or would not fit the memory.
  absl::Status CheckAnnounced(int64_t size) const {
    const auto stored = static_cast<int64_t>(file_.stored_bytes());
    const int64_t most =
        file_.is_packed() ? (stored + 1) * kMaxGzipRatio : stored;
    if (size > most) return absl::OkStatus();  // read on to where it ends
    if (size <= kSmall) return absl::OkStatus();
    return CheckFitsMemory(path_, size, AvailableMemory());
  }

  const std::string& path_;
  InputFile& file_;
  int64_t offset_ = 0;
};

// Reads the header of images, which have `pixels` together.
absl::StatusOr<IdxImages> ReadHeader(IdxFields& fields, int64_t& pixels) {
  RETURN_IF_ERROR(fields.Magic(kIdxImagesMagic));
  IdxImages images;
  ASSIGN_OR_RETURN(images.count, fields.Number("number of images"));
  ASSIGN_OR_RETURN(images.height, fields.Number("height"));
  ASSIGN_OR_RETURN(images.width, fields.Number("width"));
  int64_t rows;
  if (images.height == 0 || images.width == 0 ||
      __builtin_mul_overflow(images.count, images.height, &rows) ||
      __builtin_mul_overflow(rows, images.width, &pixels)) {
    return fields.Corrupt(
        4, absl::StrCat("the header announces ", images.count, " images of ",
                        images.height, " x ", images.width,
                        ", which no file can hold"));
  }
  images.announced = images.count;
  return images;
}

}  // namespace

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path,
                                        int64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  int64_t pixels = 0;
  ASSIGN_OR_RETURN(IdxImages images, ReadHeader(fields, pixels));
  if (pixels <= max_bytes) {
    ASSIGN_OR_RETURN(images.pixels, fields.Rest(pixels));
    return images;
  }
  const int64_t each = images.height * images.width;
  images.count = max_bytes / each;
  ASSIGN_OR_RETURN(images.pixels, fields.Next(images.count * each));
  return images;
}

absl::StatusOr<IdxImages> ReadIdxImagesHeader(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  int64_t pixels = 0;
  return ReadHeader(fields, pixels);
}

absl::StatusOr<StoredFile> OpenIdxPixels(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  int64_t pixels = 0;
  RETURN_IF_ERROR(ReadHeader(fields, pixels).status());
  ASSIGN_OR_RETURN(StoredFile stored, StoredFiles().Open(path));
  const int64_t there = static_cast<int64_t>(stored.size()) - fields.offset();
  if (there < pixels) return fields.EndsEarly(pixels, there);
  if (there > pixels) return fields.GoesOn(pixels);
  return StoredFile::Part(std::move(stored), fields.offset(), pixels);
}

absl::StatusOr<IdxLabels> ReadIdxLabels(const std::string& path,
                                        int64_t max_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  IdxFields fields(path, *file);
  RETURN_IF_ERROR(fields.Magic(kIdxLabelsMagic));
  IdxLabels labels;
  ASSIGN_OR_RETURN(labels.announced, fields.Number("number of labels"));
  if (labels.announced <= max_bytes) {
    ASSIGN_OR_RETURN(labels.labels, fields.Rest(labels.announced));
  } else {
    ASSIGN_OR_RETURN(labels.labels, fields.Next(max_bytes));
  }
  return labels;
}

}  // namespace parasol
