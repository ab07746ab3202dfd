#ifndef PARASOL_ML_KERNEL_PASS_ARGUMENT_H_
#define PARASOL_ML_KERNEL_PASS_ARGUMENT_H_

#include <cstdint>

// Arguments of kernels that differ from pass to pass. They lie in the device's
// memory, where each replay of a recorded kernel reads them anew
// (ml/device/recorder.h).
namespace parasol {

// The rows of a table that a pass reads, one for each distinct id, and their
// gradients. All of it is in the device's memory.
struct TableRows {
  const float* values;  // [rows, width]
  float* gradients;     // [rows, width]; null in an evaluation
  int64_t elements;     // rows · width
};

// The seed *base + offset, with `base` in the device's memory.
struct StoredSeed {
  const uint64_t* base = nullptr;
  uint64_t offset = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_PASS_ARGUMENT_H_
