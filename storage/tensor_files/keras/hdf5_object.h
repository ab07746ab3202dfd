#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_OBJECT_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_OBJECT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/tensor_files/keras/hdf5_bytes.h"

namespace parasol {

// The type of an element in an HDF5 file.
struct Hdf5Type {
  enum class Kind { kNumber, kText, kTextElsewhere, kOpaque, kOther };

  Kind kind = Kind::kOther;
  // Numpy's name of a number's type, "float32".
  std::string name = {};
  uint64_t bytes = 0;
};

// An attribute: a value beside an object.
struct Hdf5Attribute {
  std::string name = {};
  Hdf5Type type = {};
  bool is_scalar = false;
  std::string value = {};
};

// One object, a group or an array, as its header says.
struct Hdf5Object {
  // B-tree and heap of names of a group of the older kind.
  std::optional<std::pair<uint64_t, uint64_t>> names = {};
  // Names in a group of the newer kind, with addresses of headers.
  std::vector<std::pair<std::string, uint64_t>> links = {};
  std::vector<Hdf5Attribute> attributes = {};

  bool is_array = false;
  Hdf5Type type = {};
  std::vector<int64_t> shape = {};
  uint64_t data = 0;        // address of the first element
  uint64_t data_bytes = 0;  // size of all elements
  // Why it can't be read though it is not damaged, and what helps; "": it can.
  std::string refused = {};
};

// Returns why something can't be read though it is not damaged, and what helps;
// `what`: "is in chunks".
std::string RefusedHdf5(absl::string_view what);
// Returns the argument for a name in a group that leads to another name.
std::string LinkElsewhere(absl::string_view name);

// Reads an object's header, of either version, with all its continuations.
//   DataLoss  it is damaged; the message names the byte.
absl::StatusOr<Hdf5Object> ReadHdf5Object(Hdf5Bytes& file, uint64_t address);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_HDF5_OBJECT_H_
