#ifndef PARASOL_STORAGE_TENSOR_FILES_TENSOR_H_
#define PARASOL_STORAGE_TENSOR_FILES_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// The types of elements that can be read. Files hold others, too (kOther):
// their tensors are listed, but not read.
enum class ElementType {
  kOther,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
};

// Returns the bytes of one element; 0 for kOther.
size_t BytesOf(ElementType type);

// Returns true for types of numbers that may have a fraction.
bool IsFloat(ElementType type);

// Returns numpy's name of the type: "float32". `name` is such a name.
absl::string_view NameOf(ElementType type);
ElementType ElementTypeOf(absl::string_view name);

// A tensor as a file lists it: row-major, little-endian.
struct TensorInfo {
  std::string name = {};
  ElementType type = ElementType::kOther;
  std::vector<int64_t> shape = {};

  bool operator==(const TensorInfo&) const = default;
};

// Returns the number of elements of a shape that comes from a file.
//   DataLoss  a size is negative, or the product is too large.
absl::StatusOr<uint64_t> CountElements(absl::Span<const int64_t> shape);

// Returns the bytes of all elements of a tensor; 0 for kOther. Fails as
// CountElements() does; the message names the tensor.
absl::StatusOr<uint64_t> CountBytes(const TensorInfo& tensor);

// Converts `bytes`, whole elements of `type`, to float32, rounding to nearest.
// `out` has as many elements. The type is no kOther.
void ToFloat32(ElementType type, absl::Span<const char> bytes,
               absl::Span<float> out);

// Converts `bytes`, whole elements of `type`, to ids. `type` is kInt32, kInt64
// or kUint64. A negative number becomes the id that has its 64 bits.
void ToUint64(ElementType type, absl::Span<const char> bytes,
              absl::Span<uint64_t> out);

// Converts `bytes`, whole elements of `type`, bool or integers, to int64.
//   InvalidArgument  an element is beyond int64.
absl::Status ToInt64(ElementType type, absl::Span<const char> bytes,
                     absl::Span<int64_t> out);

// A slice of a tensor along axis 0, or the whole of it, as a file is to have
// it.
struct TensorPart {
  TensorInfo tensor = {};  // the whole tensor
  int64_t first_row = 0;
  int64_t rows = 0;  // along axis 0; without meaning for a scalar
  int64_t part = 0;  // number of this part
  int64_t parts = 1;

  // Returns the part as a tensor of its own, for files that know no slices:
  // "users/ids.part-00000-of-00002".
  TensorInfo AsTensor() const;
};

// Returns the one part of a tensor that is not cut.
TensorPart WholeTensor(TensorInfo tensor);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_TENSOR_H_
