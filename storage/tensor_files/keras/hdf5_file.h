#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_FILE_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/tensor_files/keras/hdf5_bytes.h"

namespace parasol {

// An array in an HDF5 file, row-major, little-endian, in one piece.
struct Hdf5Array {
  std::string path = {};  // "layers/dense/vars/0"
  // Numpy's name, "float32", or ml_dtypes' "bfloat16"; "" for other types.
  std::string type = {};
  std::vector<int64_t> shape = {};
  uint64_t data = 0;  // byte of the file where it begins

  bool operator==(const Hdf5Array&) const = default;
};

// Arrays and texts of an HDF5 file.
struct Hdf5Contents {
  std::vector<Hdf5Array> arrays = {};  // sorted; paths differ
  // Attributes of groups, by the group's path ("" is the root) and their own
  // names: the text, or "" if it is something else.
  std::map<std::string, std::map<std::string, std::string>> attributes = {};
};

// Reads the structure of an HDF5 file of `size` bytes, which `read` reads, but
// no elements: groups of both kinds, arrays in one piece, in the versions that
// h5py and Keras write. Reads no more metadata than some two times `size`.
//   DataLoss         the file is damaged, or cut; the message names the byte.
//   InvalidArgument  an array is in chunks, compressed or elsewhere; or links
//                    lead elsewhere. The message names it, and what to do.
//   any other        of `read`.
absl::StatusOr<Hdf5Contents> ReadHdf5(uint64_t size, Hdf5Read read);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_FILE_H_
