#ifndef PARASOL_ML_INPUT_TESTING_INPUT_FILES_H_
#define PARASOL_ML_INPUT_TESTING_INPUT_FILES_H_

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_reader.h"

namespace parasol {

// Writes `bytes` to `name` in the test's directory and returns the path.
inline std::string WriteTestFile(absl::string_view name,
                                 absl::string_view bytes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// Images in which image i has the pixels i, i + 1, … (mod 256).
inline IdxImages CountingImages(int64_t count, int64_t height, int64_t width) {
  IdxImages images = {
      .count = count, .height = height, .width = width, .pixels = {}};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t p = 0; p < height * width; ++p) {
      images.pixels.push_back(static_cast<uint8_t>(i + p));
    }
  }
  return images;
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_INPUT_FILES_H_
