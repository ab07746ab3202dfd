#ifndef PARASOL_STORAGE_TENSOR_FILES_TENSOR_READER_H_
#define PARASOL_STORAGE_TENSOR_FILES_TENSOR_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// Reads tensors from files of one format, piece by piece. What a file says of
// itself is checked before it is believed. Not thread-safe.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  // Returns the tensors, whose shapes are possible ones and whose names differ.
  virtual const std::vector<TensorInfo>& tensors() const = 0;

  // Fills `out` with the tensor's bytes from byte `first` on, whole elements.
  // Checksums are compared once a tensor was read from its first byte to its
  // last one, in order. Reading back is slow where a file is compressed.
  //   DataLoss     the file is damaged; the message names it.
  //   Unavailable  the file system refuses.
  virtual absl::Status Read(size_t tensor, uint64_t first,
                            absl::Span<char> out) = 0;

  // Returns the offset in the file of the tensor's first byte, behind which the
  // others lie as they are; nullopt: they don't, or the format does not say.
  // Errors as for Read().
  virtual absl::StatusOr<std::optional<uint64_t>> OffsetInFile(
      size_t /*tensor*/) {
    return std::nullopt;
  }
};

// Returns a reader of the same tensors, in which those that were written as
// several parts (TensorPart::AsTensor()) are one again.
//   DataLoss  a part is missing, or parts don't fit together.
absl::StatusOr<std::unique_ptr<TensorReader>> JoinParts(
    std::unique_ptr<TensorReader> reader);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_TENSOR_READER_H_
