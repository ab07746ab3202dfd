#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_SAVED_OBJECTS_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_SAVED_OBJECTS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/keras/hdf5_file.h"

namespace parasol {

// A model, a layer, a part of one or a list of such in a file of Keras 3.
struct SavedObject {
  std::string name = {};  // Keras's own; "": the file does not say
  // Arrays of the contents by their numbers in `vars`.
  std::map<size_t, size_t> variables = {};
  std::map<std::string, SavedObject> parts = {};
};

// Returns the tree of objects whose root is the model. Arrays that are no
// object's variables are left out. Pure.
SavedObject SavedObjectsOf(const Hdf5Contents& contents);

// Returns the class of an object by its name in a list: "dense" of "dense_1".
std::string SavedClassOf(absl::string_view key);

// Returns the names of a class's variables, of which there are `count`, in the
// order in which they are saved; nullopt: the class is not known, or has not so
// many. `config` is the layer's, or null.
// `*is_unclear` becomes true if there are several possibilities.
std::optional<std::vector<std::string>> VariablesOfClass(
    absl::string_view class_name, size_t count, const nlohmann::json& config,
    bool* is_unclear);

// A part of a layer that is an attribute in Keras: "query_dense".
struct SavedPart {
  std::string class_name = {};  // argument of VariablesOfClass()
  std::string name = {};        // Keras's own name of it
  int rank = 0;                 // place among the layer's parts
  // True if Keras's class has it, of which the order is known: others may have
  // an attribute of the name.
  bool is_of_class = false;
};

// Returns what the attribute `key` of a layer of the class is; nullopt: it is
// not known.
std::optional<SavedPart> SavedPartOf(absl::string_view layer_class,
                                     absl::string_view key);

// Returns true of an optimizer that makes an update of several gradients. Its
// number of iterations counts gradients. `config` is the optimizer's.
bool AccumulatesGradients(const nlohmann::json& config);

// Returns the names that an optimizer's variables have behind the number of
// iterations, group by group: each variable of the model has one of each name
// of a group before the next variable's. `config` is the optimizer's. nullopt:
// it is not known.
std::optional<std::vector<std::vector<std::string>>> SlotsOfKerasOptimizer(
    const nlohmann::json& config);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_SAVED_OBJECTS_H_
