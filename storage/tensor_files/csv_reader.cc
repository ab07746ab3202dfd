#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/sized_file.h"

namespace parasol {
namespace {

constexpr size_t kMaxListBytes = 64 << 20;
constexpr uint64_t kTextBytes = 256 << 10;
// No number has more digits.
constexpr size_t kMaxNumberBytes = 512;

// Parses `text` as a T, whole, and appends its bytes.
template <typename T>
bool AppendParsed(absl::string_view text, std::string& bytes) {
  T value = {};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  AppendLittleEndian(bytes, value);
  return true;
}

bool AppendElement(ElementType type, absl::string_view text,
                   std::string& bytes) {
  switch (type) {
    case ElementType::kFloat32:
      return AppendParsed<float>(text, bytes);
    case ElementType::kFloat64:
      return AppendParsed<double>(text, bytes);
    case ElementType::kInt8:
      return AppendParsed<int8_t>(text, bytes);
    case ElementType::kInt16:
      return AppendParsed<int16_t>(text, bytes);
    case ElementType::kInt32:
      return AppendParsed<int32_t>(text, bytes);
    case ElementType::kInt64:
      return AppendParsed<int64_t>(text, bytes);
    case ElementType::kUint8:
      return AppendParsed<uint8_t>(text, bytes);
    case ElementType::kUint16:
      return AppendParsed<uint16_t>(text, bytes);
    case ElementType::kUint32:
      return AppendParsed<uint32_t>(text, bytes);
    case ElementType::kUint64:
      return AppendParsed<uint64_t>(text, bytes);
    default:
      return false;
  }
}

// The numbers of one file, in order, as the bytes of elements.
class NumberFile {
 public:
  NumberFile(SizedFile file, ElementType type)
      : file_(std::move(file)), type_(type) {}

  // Fills `out` with the bytes from `first` on.
  absl::Status Read(uint64_t first, absl::Span<char> out) {
    if (first < next_) *this = NumberFile(std::move(file_), type_);
    while (next_ < first || !out.empty()) {
      if (elements_.empty()) {
        RETURN_IF_ERROR(Parse());
      }
      const bool skips = next_ < first;
      const size_t count = std::min<uint64_t>(
          elements_.size(), skips ? first - next_ : out.size());
      if (!skips) {
        elements_.copy(out.data(), count);
        out.remove_prefix(count);
      }
      elements_.erase(0, count);
      next_ += count;
    }
    return absl::OkStatus();
  }

  // Returns OK if all numbers were read.
  //   DataLoss  there are more.
  absl::Status CheckAtEnd() {
    while (elements_.empty() && next_text_ < file_.size()) {
      RETURN_IF_ERROR(Parse());
    }
    if (elements_.empty()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(file_.path(), ": has more numbers than its shape says"));
  }

 private:
  // Parses the next piece of text, up to the end of a number.
  absl::Status Parse() {
    const uint64_t count = std::min(kTextBytes, file_.size() - next_text_);
    if (count == 0) {
      return absl::DataLossError(absl::StrCat(
          file_.path(), ": has fewer numbers than its shape says"));
    }
    ASSIGN_OR_RETURN(const std::string text, file_.Read(next_text_, count));
    size_t end = text.find_last_of(",\n");
    const bool is_last = next_text_ + count == file_.size();
    if (end == std::string::npos && (!is_last || count > kMaxNumberBytes)) {
      return Damaged(text.substr(0, 20));
    }
    end = is_last && (end == std::string::npos || end + 1 < count) ? count
                                                                   : end + 1;
    for (absl::string_view number :
         absl::StrSplit(absl::string_view(text).substr(0, end),
                        absl::ByAnyChar(",\r\n"), absl::SkipEmpty())) {
      if (!AppendElement(type_, number, elements_)) return Damaged(number);
    }
    next_text_ += end;
    return absl::OkStatus();
  }

  absl::Status Damaged(absl::string_view number) const {
    return absl::DataLossError(absl::StrCat(file_.path(), ": \"",
                                            number.substr(0, 20), "\" is no ",
                                            NameOf(type_)));
  }

  SizedFile file_;
  ElementType type_;
  uint64_t next_text_ = 0;  // first byte of the text that is not parsed
  uint64_t next_ = 0;       // first byte of the tensor that is in elements_
  std::string elements_ = {};
};

class CsvReader : public TensorReader {
 public:
  explicit CsvReader(std::string path) : path_(std::move(path)) {}

  absl::Status ReadList() {
    const std::string list_path = absl::StrCat(path_, "/", kCsvListName);
    ASSIGN_OR_RETURN(const std::string list,
                     ReadFile(list_path, kMaxListBytes));
    std::set<std::string> names;
    bool is_head = true;
    for (const absl::string_view line :
         absl::StrSplit(list, absl::ByAnyChar("\r\n"), absl::SkipEmpty())) {
      if (!std::exchange(is_head, false)) {
        RETURN_IF_ERROR(AddTensor(line)) << list_path;
        if (!names.insert(tensors_.back().name).second) {
          return absl::DataLossError(absl::StrCat(
              list_path, ": has two tensors ", tensors_.back().name));
        }
      }
    }
    return absl::OkStatus();
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    std::optional<NumberFile>& open = open_[tensor];
    if (!open) {
      ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(files_[tensor]));
      open.emplace(std::move(file), tensors_[tensor].type);
    }
    RETURN_IF_ERROR(open->Read(first, out));
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(tensors_[tensor]));
    if (first + out.size() < bytes) return absl::OkStatus();
    RETURN_IF_ERROR(open->CheckAtEnd());
    // A table has many parts, and a process may open only some files.
    open.reset();
    return absl::OkStatus();
  }

 private:
  absl::Status AddTensor(absl::string_view line) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    TensorInfo info;
    bool good = fields.size() == 4 && fields[3].find('/') == std::string::npos;
    if (good) {
      info.name = fields[0];
      info.type = ElementTypeOf(fields[1]);
      for (const absl::string_view size :
           absl::StrSplit(fields[2], ' ', absl::SkipEmpty())) {
        int64_t number = 0;
        good &= absl::SimpleAtoi(size, &number);
        info.shape.push_back(number);
      }
    }
    if (!good || info.type == ElementType::kOther) {
      return absl::DataLossError(absl::StrCat(
          "this line is not tensor,dtype,shape,file: ", line.substr(0, 80)));
    }
    RETURN_IF_ERROR(CountBytes(info).status());
    files_.push_back(absl::StrCat(path_, "/", fields[3]));
    RETURN_IF_ERROR(SizedFile::Open(files_.back()).status());
    open_.emplace_back();
    tensors_.push_back(std::move(info));
    return absl::OkStatus();
  }

  const std::string path_;
  std::vector<TensorInfo> tensors_;
  // In the order of `tensors_`: paths, and the files that are being read.
  std::vector<std::string> files_;
  std::vector<std::optional<NumberFile>> open_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenCsv(const std::string& path) {
  auto reader = std::make_unique<CsvReader>(path);
  RETURN_IF_ERROR(reader->ReadList());
  return reader;
}

}  // namespace parasol
