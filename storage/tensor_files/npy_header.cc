#include "storage/tensor_files/npy_header.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

constexpr absl::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kVersion1PrefixBytes = 10;
constexpr size_t kNpyAlignment = 64;
// numpy itself refuses more than 10,000 by default.
constexpr uint64_t kMaxNpyHeaderBytes = 1 << 20;

constexpr std::pair<ElementType, absl::string_view> kNpyTypes[] = {
    {ElementType::kFloat16, "<f2"}, {ElementType::kBfloat16, "<u2"},
    {ElementType::kFloat32, "<f4"}, {ElementType::kFloat64, "<f8"},
    {ElementType::kBool, "|b1"},    {ElementType::kInt8, "|i1"},
    {ElementType::kInt16, "<i2"},   {ElementType::kInt32, "<i4"},
    {ElementType::kInt64, "<i8"},   {ElementType::kUint8, "|u1"},
    {ElementType::kUint16, "<u2"},  {ElementType::kUint32, "<u4"},
    {ElementType::kUint64, "<u8"}};

absl::Status DamagedNpy(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("is no .npy array: ", what));
}

// The text of the value of `key` in the dictionary, up to `end`.
std::optional<absl::string_view> ValueOf(absl::string_view dictionary,
                                         absl::string_view key, char end) {
  const std::string quoted = absl::StrCat("'", key, "':");
  const size_t found = dictionary.find(quoted);
  if (found == absl::string_view::npos) return std::nullopt;
  dictionary.remove_prefix(found + quoted.size());
  const size_t stop = dictionary.find(end);
  if (stop == absl::string_view::npos) return std::nullopt;
  return absl::StripAsciiWhitespace(dictionary.substr(0, stop));
}

// "(2, 3" as ValueOf() cuts it.
std::optional<std::vector<int64_t>> ParseShape(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "(")) return std::nullopt;
  std::vector<int64_t> shape;
  for (absl::string_view size : absl::StrSplit(text, ',')) {
    size = absl::StripAsciiWhitespace(size);
    if (size.empty()) continue;  // behind the comma of "(2,)"
    int64_t number = 0;
    if (!absl::SimpleAtoi(size, &number) || number < 0) return std::nullopt;
    shape.push_back(number);
  }
  return shape;
}

ElementType TypeOf(absl::string_view quoted) {
  for (const auto& [type, name] : kNpyTypes) {
    if (type != ElementType::kBfloat16 &&
        quoted == absl::StrCat("'", name, "'")) {
      return type;
    }
  }
  return ElementType::kOther;
}

}  // namespace

std::string NpyHeader(const TensorInfo& tensor, size_t min_bytes) {
  absl::string_view type;
  for (const auto& [known, name] : kNpyTypes) {
    if (known == tensor.type) type = name;
  }
  std::string shape;
  for (const int64_t size : tensor.shape) absl::StrAppend(&shape, size, ", ");
  // Python writes (2,) and (2, 3).
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.pop_back();
  std::string dictionary =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                   shape, "), }");
  const size_t needed = kVersion1PrefixBytes + dictionary.size() + 1;
  size_t bytes = std::max(needed, min_bytes);
  bytes += (kNpyAlignment - bytes % kNpyAlignment) % kNpyAlignment;
  dictionary.append(bytes - needed, ' ');
  dictionary += '\n';
  std::string header = absl::StrCat(kNpyMagic, absl::string_view("\1\0", 2));
  AppendLittleEndian(header, static_cast<uint16_t>(dictionary.size()));
  return absl::StrCat(header, dictionary);
}

absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view prefix) {
  if (prefix.size() < kNpyPrefixBytes || !absl::StartsWith(prefix, kNpyMagic)) {
    return DamagedNpy("it does not begin with numpy's magic bytes");
  }
  const int version = prefix[kNpyMagic.size()];
  const uint64_t bytes =
      version == 1
          ? kVersion1PrefixBytes + LoadLittleEndian<uint16_t>(&prefix[8])
          : kNpyPrefixBytes + uint64_t{LoadLittleEndian<uint32_t>(&prefix[8])};
  if (version < 1 || version > 3 || bytes < kNpyPrefixBytes ||
      bytes > kMaxNpyHeaderBytes) {
    return DamagedNpy(
        absl::StrCat("version ", version, ", a header of ", bytes, " bytes"));
  }
  return bytes;
}

absl::StatusOr<TensorInfo> ParseNpyHeader(absl::string_view header) {
  const auto type = ValueOf(header, "descr", ',');
  const auto order = ValueOf(header, "fortran_order", ',');
  const auto shape_text = ValueOf(header, "shape", ')');
  const auto shape = shape_text ? ParseShape(*shape_text) : std::nullopt;
  if (!type || !order || !shape) return DamagedNpy("its header is damaged");
  if (*order == "True" && shape->size() > 1) {
    return absl::InvalidArgumentError(
        "is in Fortran's order; save numpy.ascontiguousarray of it");
  }
  return TensorInfo{.type = TypeOf(*type), .shape = *shape};
}

absl::StatusOr<NpyArray> ReadNpyHeader(
    uint64_t size,
    absl::FunctionRef<absl::Status(uint64_t offset, absl::Span<char> out)>
        read) {
  std::string header(std::min<uint64_t>(size, kNpyPrefixBytes), '\0');
  RETURN_IF_ERROR(read(0, absl::MakeSpan(header)));
  ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(header));
  if (header_bytes > size) return DamagedNpy("it ends within its header");
  header.resize(header_bytes);
  RETURN_IF_ERROR(
      read(kNpyPrefixBytes, absl::MakeSpan(header).subspan(kNpyPrefixBytes)));
  ASSIGN_OR_RETURN(TensorInfo info, ParseNpyHeader(header));
  ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info));
  if (info.type != ElementType::kOther && bytes != size - header_bytes) {
    return absl::DataLossError(absl::StrCat("has ", size - header_bytes,
                                            " bytes for the shape ",
                                            ShapeText(info.shape)));
  }
  return NpyArray{.tensor = std::move(info), .data = header_bytes};
}

}  // namespace parasol
