#ifndef PARASOL_ML_KERNEL_PASS_ARGUMENT_H_
#define PARASOL_ML_KERNEL_PASS_ARGUMENT_H_

#include <cstdint>

// Arguments of kernels that differ from pass to pass. They lie in the device's
// memory, where each replay of a recorded kernel reads them anew
// (ml/device/recorder.h).
namespace parasol {

#ifdef __CUDACC__
#define PARASOL_ON_ANY_DEVICE __host__ __device__ __forceinline__
#else
#define PARASOL_ON_ANY_DEVICE inline
#endif

// All rows of a table in the device's memory, in blocks of 2^shift rows: row
// `number` is in block number >> shift. A row has `floats` float32, its values
// and then each slot's. Behind a block's rows may be a mark for each.
struct RowBlocks {
  float* const* blocks;
  int32_t shift;
  int32_t floats;

  PARASOL_ON_ANY_DEVICE float* row(int32_t number) const {
    const int64_t in_block = number & ((1 << shift) - 1);
    return blocks[number >> shift] + in_block * floats;
  }
  PARASOL_ON_ANY_DEVICE int32_t* mark(int32_t number) const {
    const int32_t in_block = number & ((1 << shift) - 1);
    float* const marks = blocks[number >> shift] + (int64_t{floats} << shift);
    return reinterpret_cast<int32_t*>(marks) + in_block;
  }
};

// The rows of a table that a pass reads, one for each distinct id, and their
// gradients. All of it is in the device's memory.
struct TableRows {
  const float* values;  // [rows, width]; null: the values are in `blocks`
  float* gradients;     // [rows, width]; null in an evaluation
  int64_t elements;     // rows · width
  int32_t width;
  // The number of each row in `blocks`, if its values are there.
  const int32_t* numbers;
  RowBlocks blocks;

  // Returns the values of the row at `position`.
  PARASOL_ON_ANY_DEVICE const float* row(int64_t position) const {
    if (values != nullptr) return values + position * width;
    return blocks.row(numbers[position]);
  }
  // Returns element `i` of all values.
  PARASOL_ON_ANY_DEVICE float value(int64_t i) const {
    if (values != nullptr) return values[i];
    return row(i / width)[i % width];
  }
};

// The places of an input at which each row is looked up, from row to row: a sum
// over them has one order. In the device's memory.
struct RowPlaces {
  // The number of rows that the input looks up. The other arrays have one entry
  // for each row, and for each place.
  const int32_t* num_rows = nullptr;
  const int32_t* rows = nullptr;    // positions, as Bags::positions has them
  const int32_t* starts = nullptr;  // [rows + 1] the row's first place
  const int32_t* places = nullptr;  // ascend within a row
  // The example that has the place; null: the place's own number.
  const int32_t* examples = nullptr;
  int64_t capacity = 0;  // estimate of num_rows, for the grid
};

// The seed *base + offset, with `base` in the device's memory.
struct StoredSeed {
  const uint64_t* base = nullptr;
  uint64_t offset = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_PASS_ARGUMENT_H_
