#include "storage/tensor_files/tensor.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "storage/byte_order.h"

namespace parasol {
namespace {

struct TypeProperties {
  ElementType type;
  absl::string_view name;
  size_t bytes;
};

constexpr TypeProperties kTypes[] = {{ElementType::kFloat16, "float16", 2},
                                     {ElementType::kBfloat16, "bfloat16", 2},
                                     {ElementType::kFloat32, "float32", 4},
                                     {ElementType::kFloat64, "float64", 8},
                                     {ElementType::kBool, "bool", 1},
                                     {ElementType::kInt8, "int8", 1},
                                     {ElementType::kInt16, "int16", 2},
                                     {ElementType::kInt32, "int32", 4},
                                     {ElementType::kInt64, "int64", 8},
                                     {ElementType::kUint8, "uint8", 1},
                                     {ElementType::kUint16, "uint16", 2},
                                     {ElementType::kUint32, "uint32", 4},
                                     {ElementType::kUint64, "uint64", 8}};

// Bytes of a tensor that no machine has.
constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 62;

float FromBfloat16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

float FromFloat16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = bits >> 10 & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero, or without a leading 1
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// Calls `convert` with each element of `bytes`, a T, for each of `out`.
template <typename T, typename Out, typename Convert>
void ConvertEach(absl::Span<const char> bytes, absl::Span<Out> out,
                 Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = convert(LoadLittleEndian<T>(bytes.data() + i * sizeof(T)));
  }
}

}  // namespace

size_t BytesOf(ElementType type) {
  for (const TypeProperties& known : kTypes) {
    if (known.type == type) return known.bytes;
  }
  return 0;
}

bool IsFloat(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16 ||
         type == ElementType::kFloat32 || type == ElementType::kFloat64;
}

absl::string_view NameOf(ElementType type) {
  for (const TypeProperties& known : kTypes) {
    if (known.type == type) return known.name;
  }
  return "another type";
}

ElementType ElementTypeOf(absl::string_view name) {
  for (const TypeProperties& known : kTypes) {
    if (known.name == name) return known.type;
  }
  return ElementType::kOther;
}

absl::StatusOr<uint64_t> CountElements(absl::Span<const int64_t> shape) {
  uint64_t elements = 1;
  bool possible = true;
  for (const int64_t size : shape) {
    possible &=
        size >= 0 && !__builtin_mul_overflow(
                         elements, static_cast<uint64_t>(size), &elements);
  }
  if (possible && elements <= kMaxTensorBytes / sizeof(double)) return elements;
  return absl::DataLossError(
      absl::StrCat("the shape ", ShapeText(shape), " is not possible"));
}

absl::StatusOr<uint64_t> CountBytes(const TensorInfo& tensor) {
  ASSIGN_OR_RETURN(const uint64_t elements, CountElements(tensor.shape),
                   _ << "tensor " << tensor.name);
  return elements * BytesOf(tensor.type);
}

void ToFloat32(ElementType type, absl::Span<const char> bytes,
               absl::Span<float> out) {
  const auto number = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case ElementType::kFloat16:
      return ConvertEach<uint16_t>(bytes, out, FromFloat16);
    case ElementType::kBfloat16:
      return ConvertEach<uint16_t>(bytes, out, FromBfloat16);
    case ElementType::kFloat32:
      return ConvertEach<float>(bytes, out, number);
    case ElementType::kFloat64:
      return ConvertEach<double>(bytes, out, number);
    case ElementType::kBool:
    case ElementType::kUint8:
      return ConvertEach<uint8_t>(bytes, out, number);
    case ElementType::kInt8:
      return ConvertEach<int8_t>(bytes, out, number);
    case ElementType::kInt16:
      return ConvertEach<int16_t>(bytes, out, number);
    case ElementType::kInt32:
      return ConvertEach<int32_t>(bytes, out, number);
    case ElementType::kInt64:
      return ConvertEach<int64_t>(bytes, out, number);
    case ElementType::kUint16:
      return ConvertEach<uint16_t>(bytes, out, number);
    case ElementType::kUint32:
      return ConvertEach<uint32_t>(bytes, out, number);
    case ElementType::kUint64:
      return ConvertEach<uint64_t>(bytes, out, number);
    case ElementType::kOther:
      return;
  }
}

void ToUint64(ElementType type, absl::Span<const char> bytes,
              absl::Span<uint64_t> out) {
  const auto number = [](auto value) { return static_cast<uint64_t>(value); };
  if (type == ElementType::kInt32) {
    ConvertEach<int32_t>(bytes, out, number);
  } else {
    ConvertEach<uint64_t>(bytes, out, number);
  }
}

absl::Status ToInt64(ElementType type, absl::Span<const char> bytes,
                     absl::Span<int64_t> out) {
  const auto number = [](auto value) { return static_cast<int64_t>(value); };
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      ConvertEach<uint8_t>(bytes, out, number);
      break;
    case ElementType::kInt8:
      ConvertEach<int8_t>(bytes, out, number);
      break;
    case ElementType::kInt16:
      ConvertEach<int16_t>(bytes, out, number);
      break;
    case ElementType::kInt32:
      ConvertEach<int32_t>(bytes, out, number);
      break;
    case ElementType::kInt64:
      ConvertEach<int64_t>(bytes, out, number);
      break;
    case ElementType::kUint16:
      ConvertEach<uint16_t>(bytes, out, number);
      break;
    case ElementType::kUint32:
      ConvertEach<uint32_t>(bytes, out, number);
      break;
    case ElementType::kUint64:
      ConvertEach<uint64_t>(bytes, out, number);
      for (const int64_t value : out) {
        if (value >= 0) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("the integer ", static_cast<uint64_t>(value),
                         " is beyond int64; save it as int64 or float64"));
      }
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("has no integers, but ", NameOf(type)));
  }
  return absl::OkStatus();
}

TensorInfo TensorPart::AsTensor() const {
  TensorInfo info = tensor;
  if (parts == 1) return info;
  info.name = absl::StrFormat("%s.part-%05d-of-%05d", tensor.name, part, parts);
  info.shape[0] = rows;
  return info;
}

TensorPart WholeTensor(TensorInfo tensor) {
  TensorPart part;
  part.rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  part.tensor = std::move(tensor);
  return part;
}

}  // namespace parasol
