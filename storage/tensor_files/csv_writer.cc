#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/csv_tensors.h"
#include "storage/tensor_files/staged_file.h"

namespace parasol {
namespace {

// The longest text of a number that is written here.
constexpr size_t kNumberBytes = 32;

// A plain file name that says which tensor it has.
std::string FileNameOf(const std::string& tensor, size_t number) {
  std::string name = absl::StrCat(number, "-", tensor, ".csv");
  for (char& c : name) {
    if (!absl::ascii_isalnum(c) && c != '.' && c != '-') c = '_';
  }
  return name;
}

template <typename T>
void AppendNumber(T value, std::string& text) {
  char digits[kNumberBytes];
  const auto end = std::to_chars(digits, digits + kNumberBytes, value).ptr;
  text.append(digits, end);
}

void AppendElement(ElementType type, const char* bytes, std::string& text) {
  switch (type) {
    case ElementType::kInt64:
      return AppendNumber(LoadLittleEndian<int64_t>(bytes), text);
    case ElementType::kUint64:
      return AppendNumber(LoadLittleEndian<uint64_t>(bytes), text);
    default:
      return AppendNumber(LoadLittleEndian<float>(bytes), text);
  }
}

class CsvWriter : public TensorWriter {
 public:
  CsvWriter(std::string path, std::vector<TensorPart> parts)
      : TensorWriter(std::move(parts)),
        path_(std::move(path)),
        staged_(StagedNameOf(path_)) {}
  ~CsvWriter() override {
    if (!committed_) RemoveTree(staged_).IgnoreError();
  }

  absl::Status Start() { return MakeDirectories(staged_); }

 protected:
  absl::Status BeginPart(const TensorPart& part) override {
    tensor_ = part.AsTensor();
    const std::string file = FileNameOf(tensor_.name, files_++);
    absl::StrAppend(&list_, tensor_.name, ",", NameOf(tensor_.type), ",",
                    absl::StrJoin(tensor_.shape, " "), ",", file, "\n");
    column_ = 0;
    ASSIGN_OR_RETURN(StagedFile opened,
                     StagedFile::Create(absl::StrCat(staged_, "/", file)));
    file_.emplace(std::move(opened));
    return absl::OkStatus();
  }

  absl::Status WriteElements(absl::string_view bytes) override {
    const int64_t columns = tensor_.shape.empty() ? 1 : tensor_.shape.back();
    text_.clear();
    const size_t element = BytesOf(tensor_.type);
    for (size_t i = 0; i < bytes.size(); i += element) {
      AppendElement(tensor_.type, bytes.data() + i, text_);
      column_ = (column_ + 1) % columns;
      text_ += column_ == 0 ? '\n' : ',';
    }
    return file_->Append(text_);
  }

  absl::Status EndPart(const TensorPart&) override { return file_->Commit(); }

  absl::Status Commit() override {
    RETURN_IF_ERROR(
        WriteFileDurably(absl::StrCat(staged_, "/", kCsvListName), list_));
    RETURN_IF_ERROR(SyncDirectory(staged_));
    RETURN_IF_ERROR(Rename(staged_, path_));
    committed_ = true;
    const std::string parent = std::filesystem::path(path_).parent_path();
    return SyncDirectory(parent.empty() ? "." : parent);
  }

 private:
  const std::string path_;
  const std::string staged_;
  bool committed_ = false;
  std::string list_ = "tensor,dtype,shape,file\n";
  size_t files_ = 0;
  // The part at hand.
  TensorInfo tensor_;
  int64_t column_ = 0;  // of the next element
  std::optional<StagedFile> file_;
  std::string text_;  // kept for its memory
};

absl::Status CheckCsvNames(const std::vector<TensorPart>& parts) {
  for (const TensorPart& part : parts) {
    if (part.tensor.name.find_first_of("\",\r\n") == std::string::npos) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("a name with a comma, quote or line's end can't be in a "
                     "CSV file: ",
                     part.tensor.name, "; choose another format"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TensorWriter>> NewCsvWriter(
    const std::string& path, std::vector<TensorPart> parts) {
  RETURN_IF_ERROR(CheckCsvNames(parts));
  std::error_code ignored;  // what can't be seen can't be made either
  if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": exists; remove it or name another directory"));
  }
  auto writer = std::make_unique<CsvWriter>(path, std::move(parts));
  RETURN_IF_ERROR(writer->Start());
  return writer;
}

}  // namespace parasol
