#include "loop/arrays.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "storage/tensor_files/npy_reader.h"
#include "storage/tensor_files/npz_reader.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol::loop {
namespace {

constexpr uint64_t kPieceElements = 1 << 16;

// Replaces `bytes` by elements of a tensor, and returns how many there are from
// `first` on, one piece at most.
absl::StatusOr<uint64_t> ReadPiece(TensorReader& reader, size_t number,
                                   uint64_t first, uint64_t elements,
                                   std::vector<char>& bytes) {
  const size_t each = BytesOf(reader.tensors()[number].type);
  const uint64_t count = std::min(elements - first, kPieceElements);
  bytes.resize(count * each);
  RETURN_IF_ERROR(reader.Read(number, first * each, absl::MakeSpan(bytes)));
  return count;
}

// Reads a tensor of T, a piece at a time: `convert` fills T of bytes.
template <typename T, typename Convert>
absl::StatusOr<Tensor> ReadAs(TensorReader& reader, size_t number,
                              uint64_t elements, const TensorShape& shape,
                              Convert convert) {
  // One more, for none may not be allocated.
  const std::shared_ptr<T> values(new (std::nothrow) T[elements + 1],
                                  std::default_delete<T[]>());
  if (values == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the shape ", shape.ToString()));
  }
  std::vector<char> bytes;
  for (uint64_t first = 0; first < elements;) {
    ASSIGN_OR_RETURN(const uint64_t count,
                     ReadPiece(reader, number, first, elements, bytes));
    RETURN_IF_ERROR(convert(reader.tensors()[number].type, bytes,
                            absl::MakeSpan(values.get() + first, count)));
    first += count;
  }
  return Tensor::Alias(std::shared_ptr<const T>(values), shape);
}

absl::Status ToFloats(ElementType type, absl::Span<const char> bytes,
                      absl::Span<float> out) {
  ToFloat32(type, bytes, out);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ReadArray(TensorReader& reader, size_t number) {
  const TensorInfo& info = reader.tensors()[number];
  ASSIGN_OR_RETURN(const uint64_t elements, CountElements(info.shape));
  const TensorShape shape(info.shape);
  if (info.type == ElementType::kOther) {
    return absl::InvalidArgumentError(
        "has elements of a type that is not read; save it as float32, float64, "
        "bool or an integer of the machine's byte order");
  }
  ASSIGN_OR_RETURN(
      Tensor tensor,
      IsFloat(info.type)
          ? ReadAs<float>(reader, number, elements, shape, ToFloats)
          : ReadAs<int64_t>(reader, number, elements, shape, ToInt64));
  RETURN_IF_ERROR(tensor.status());
  return tensor;
}

}  // namespace

absl::StatusOr<std::map<std::string, Tensor>> LoadNpz(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader, OpenNpz(path));
  std::map<std::string, Tensor> arrays;
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    const std::string& name = reader->tensors()[i].name;
    ASSIGN_OR_RETURN(arrays[name], ReadArray(*reader, i),
                     _ << path << ": array \"" << name << "\"");
  }
  return arrays;
}

absl::StatusOr<Tensor> LoadNpy(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader,
                   OpenNpy(path, ""));
  ASSIGN_OR_RETURN(Tensor tensor, ReadArray(*reader, 0), _ << path);
  return tensor;
}

}  // namespace parasol::loop
