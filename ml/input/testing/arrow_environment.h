#ifndef PARASOL_ML_INPUT_TESTING_ARROW_ENVIRONMENT_H_
#define PARASOL_ML_INPUT_TESTING_ARROW_ENVIRONMENT_H_

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ml/input/library/arrow_library.h"

namespace parasol {

// Has this process, and those that it starts, find the Arrow that
// tests/arrow/install has installed, unless PARASOL_ARROW names another one.
// Returns an empty text if it can be opened, or else why a test that needs it
// is skipped.
inline std::string ArrowLacks() {
  // The folder, in whose name may be blanks, and what is installed there.
  std::string folder;
  std::ifstream file("tests/arrow/environment/folder");
  if (std::getline(file, folder)) {
    folder.resize(std::min(folder.size(), folder.rfind(' ')));
    setenv("PARASOL_ARROW", folder.c_str(), /*overwrite=*/0);
  }
  const absl::Status status = ArrowLibrary::Open().status();
  if (status.ok()) return "";
  return absl::StrCat(status.message(), "; run tests/arrow/install");
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_ARROW_ENVIRONMENT_H_
