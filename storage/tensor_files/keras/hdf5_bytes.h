#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_BYTES_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace parasol {

// Reads bytes of a file; fails if they are not all there.
using Hdf5Read =
    absl::FunctionRef<absl::Status(uint64_t offset, absl::Span<char> out)>;

// An address that means "nowhere".
inline constexpr uint64_t kNoHdf5Address = ~uint64_t{0};

// Returns an error of a file that is damaged at a byte.
absl::Status DamagedHdf5(uint64_t byte, absl::string_view what);

// The metadata of an HDF5 file, each byte of which is read about once: so
// nothing in a file of a given size, a circle for one, takes longer than its
// size allows. Not thread-safe.
class Hdf5Bytes {
 public:
  Hdf5Bytes(uint64_t size, Hdf5Read read);

  uint64_t size() const { return size_; }

  // Returns `count` bytes of metadata. Both numbers may come from the file.
  //   DataLoss   they are not all in the file, or more was read than a whole
  //              file has.
  //   any other  of the function that reads.
  absl::StatusOr<std::string> Read(uint64_t offset, uint64_t count);

 private:
  const uint64_t size_;
  const Hdf5Read read_;
  uint64_t left_;  // bytes that may still be read
};

// Takes little-endian numbers and texts from the front of bytes. What is
// missing is 0 or empty, and is remembered.
class Hdf5Fields {
 public:
  explicit Hdf5Fields(absl::string_view bytes) : bytes_(bytes) {}

  // Takes a number of `bytes` bytes, 1 to 8.
  uint64_t Number(size_t bytes);
  absl::string_view Text(size_t bytes);
  void Skip(size_t bytes) { Text(bytes); }
  // Skips to a multiple of 8 bytes from the front.
  void Align() { Skip((8 - place_ % 8) % 8); }

  bool ok() const { return ok_; }
  size_t place() const { return place_; }
  size_t left() const { return bytes_.size() - place_; }

 private:
  const absl::string_view bytes_;
  size_t place_ = 0;
  bool ok_ = true;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_BYTES_H_
