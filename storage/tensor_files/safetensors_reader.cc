#include "storage/tensor_files/safetensors_reader.h"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "nlohmann/json.hpp"
#include "storage/byte_order.h"
#include "storage/tensor_files/safetensors_type.h"
#include "storage/tensor_files/sized_file.h"

namespace parasol {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = 8;
// The limit of the format's own library.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

ElementType TypeOf(const Json& name) {
  for (const auto& [type, known] : kSafetensorsTypes) {
    if (name == std::string(known)) return type;
  }
  return ElementType::kOther;
}

// The whole numbers of a JSON array; nullopt if it is anything else.
template <typename T>
std::optional<std::vector<T>> NumbersOf(const Json& array) {
  if (!array.is_array()) return std::nullopt;
  std::vector<T> numbers;
  for (const Json& number : array) {
    if (!number.is_number_unsigned()) return std::nullopt;
    const uint64_t value = number.get<uint64_t>();
    if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    numbers.push_back(static_cast<T>(value));
  }
  return numbers;
}

class SafetensorsReader : public TensorReader {
 public:
  explicit SafetensorsReader(SizedFile file) : file_(std::move(file)) {}

  absl::Status ReadHeader() {
    std::array<char, kLengthBytes> prefix;
    RETURN_IF_ERROR(file_.Read(0, absl::MakeSpan(prefix)));
    const uint64_t length = LoadLittleEndian<uint64_t>(prefix.data());
    if (length > kMaxHeaderBytes) {
      return Damaged(absl::StrCat("its header has ", length, " bytes"));
    }
    ASSIGN_OR_RETURN(const std::string text, file_.Read(kLengthBytes, length));
    data_ = kLengthBytes + length;
    std::set<std::string> names;
    const absl::Status visited = VisitJsonMembers(
        text, [&](const std::string& name, const Json& entry) -> absl::Status {
          if (name == "__metadata__") return absl::OkStatus();
          if (!names.insert(name).second) {
            return Damaged(absl::StrCat("two tensors have the name ", name));
          }
          return AddTensor(name, entry);
        });
    if (!absl::IsInvalidArgument(visited)) return visited;
    return Damaged(
        absl::StrCat("its header is no JSON object: ", visited.message()));
  }

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    return file_.Read(data_ + begins_[tensor] + first, out);
  }

 private:
  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(file_.path(), ": is no safetensors file: ", what));
  }

  absl::Status AddTensor(const std::string& name, const Json& entry) {
    const Json none;
    const auto field = [&](const char* key) -> const Json& {
      return entry.is_object() && entry.contains(key) ? entry.at(key) : none;
    };
    const auto shape = NumbersOf<int64_t>(field("shape"));
    const auto offsets = NumbersOf<uint64_t>(field("data_offsets"));
    if (!shape || !offsets || offsets->size() != 2 ||
        !field("dtype").is_string()) {
      return Damaged(
          absl::StrCat("tensor ", name, " lacks dtype, shape or data_offsets"));
    }
    TensorInfo info = {
        .name = name, .type = TypeOf(field("dtype")), .shape = *shape};
    const uint64_t begin = (*offsets)[0];
    const uint64_t end = (*offsets)[1];
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info), _ << file_.path());
    if (begin > end || end > file_.size() - data_ ||
        (info.type != ElementType::kOther && end - begin != bytes)) {
      return Damaged(absl::StrCat(
          "tensor ", name, " of ", bytes, " bytes has the data_offsets ", begin,
          " and ", end, " in ", file_.size() - data_, " bytes of data"));
    }
    begins_.push_back(begin);
    tensors_.push_back(std::move(info));
    return absl::OkStatus();
  }

  const SizedFile file_;
  uint64_t data_ = 0;  // first byte of the tensors' data
  std::vector<TensorInfo> tensors_;
  std::vector<uint64_t> begins_;  // first byte of each tensor, from data_ on
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorReader>> OpenSafetensors(
    const std::string& path) {
  ASSIGN_OR_RETURN(SizedFile file, SizedFile::Open(path));
  auto reader = std::make_unique<SafetensorsReader>(std::move(file));
  RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

}  // namespace parasol
