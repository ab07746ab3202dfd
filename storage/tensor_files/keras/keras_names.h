#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_KERAS_NAMES_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_KERAS_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/keras/hdf5_file.h"

namespace parasol {

// The configuration of a model that Keras has saved, null where there is none.
struct KerasConfig {
  nlohmann::json model = {};      // {"class_name": …, "config": …}
  nlohmann::json optimizer = {};  // the same
};

// Parses a `.keras` file's config.json. Errors as for VisitJsonMembers().
absl::StatusOr<KerasConfig> ParseKerasConfig(absl::string_view json);

// Returns Keras's full names ("hidden/kernel", w.path in Keras, without the
// whole model's own name, and always with the names of models inside of it) of
// the arrays of a file, in their order. Files of
// save() and save_weights() have "layers/dense/vars/0" instead; from the
// configuration come the names of layers of Keras before 3.6, and the order of
// the optimizer's variables, "adam/hidden_kernel_momentum". What can't be told
// keeps its path; layers without a name from anywhere have names such as
// "layers/dense_1/kernel", numbered for each class. "" is the name of what is
// there a second time, a LossScaleOptimizer's copies. Pure.
//   InvalidArgument  two arrays have one name, or it can't be told which of a
//                    layer's variables are there.
absl::StatusOr<std::vector<std::string>> KerasVariableNames(
    const Hdf5Contents& contents, const KerasConfig& config);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_KERAS_NAMES_H_
