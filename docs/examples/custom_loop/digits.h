#ifndef PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_DIGITS_H_
#define PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_DIGITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "loop/loop.h"

namespace parasol {

// Images of digits, float32 [count, 28, 28, 1] from 0 to 1, and what they show,
// int64 [count].
struct Digits {
  Tensor images;
  Tensor labels;
};

// Reads the first `count` digits of MNIST's files of `set` ("train", "t10k") in
// a directory. Without one draws them, as the quick start does, others for each
// seed.
//   NotFound  a file is not there.
absl::StatusOr<Digits> LoadDigits(const std::string& directory,
                                  const std::string& set, int64_t count,
                                  uint64_t seed);

// Prints images [count, 28, 28, 1] side by side, two rows of pixels a line.
void PrintDigits(const Tensor& images);

}  // namespace parasol

#endif  // PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_DIGITS_H_
