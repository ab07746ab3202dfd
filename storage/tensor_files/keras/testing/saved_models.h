#ifndef PARASOL_STORAGE_TENSOR_FILES_KERAS_TESTING_SAVED_MODELS_H_
#define PARASOL_STORAGE_TENSOR_FILES_KERAS_TESTING_SAVED_MODELS_H_

#include <string>

#include "nlohmann/json.hpp"

namespace parasol {

// Files that make_files.py there has written.
inline constexpr char kKerasTestData[] = "storage/tensor_files/keras/testdata/";

// Returns the line of models*.jsonl there that has the file; fails the test,
// and returns null, if there is none.
nlohmann::json SavedKerasModel(const std::string& file);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TENSOR_FILES_KERAS_TESTING_SAVED_MODELS_H_
