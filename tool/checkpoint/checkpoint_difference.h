#ifndef PARASOL_TOOL_CHECKPOINT_CHECKPOINT_DIFFERENCE_H_
#define PARASOL_TOOL_CHECKPOINT_CHECKPOINT_DIFFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// Comparison of an array that both checkpoints have: a variable's value or one
// of its slots.
struct ArrayDifference {
  std::string name;
  int64_t elements = 0;
  int64_t differing = 0;
  // Largest absolute difference of two elements; infinity where only one of
  // them is NaN.
  double largest = 0;
};

// Comparison of a table that both checkpoints have. Rows are compared with
// their slots.
struct TableDifference {
  std::string name;
  int64_t rows_a = 0;
  int64_t rows_b = 0;
  int64_t only_in_a = 0;
  int64_t only_in_b = 0;
  int64_t differing = 0;  // rows in both that differ
  double largest = 0;
};

// Differences of two checkpoints A and B. Elements are equal if they are equal
// as numbers or both NaN.
struct CheckpointDifference {
  durable::CheckpointManifest a;
  durable::CheckpointManifest b;
  // Differences of names, shapes, slots and widths, a sentence each.
  std::vector<std::string> structure;
  std::vector<ArrayDifference> arrays;
  std::vector<TableDifference> tables;

  // Returns true if both have the same names, shapes and rows, and no element
  // differs by more than `tolerance`.
  bool IsSame(double tolerance) const;
};

// Memory for the rows of a table that are compared at a time. A larger table is
// read several times.
inline constexpr size_t kComparedRowBytes = size_t{512} << 20;

// Compares the values, slots and rows of two checkpoints, and verifies their
// files. Steps, runs and jobs may differ. Fails as reading the checkpoints
// does.
absl::StatusOr<CheckpointDifference> Compare(
    const CheckpointReader& a, const CheckpointReader& b,
    size_t row_bytes = kComparedRowBytes);

// Returns the comparison for people: what differs by more than `tolerance`, and
// a last line with the result.
std::string ToText(const CheckpointDifference& difference, double tolerance);

// Returns the comparison as one JSON object, with its newline. An infinite
// difference is null.
std::string ToJson(const CheckpointDifference& difference, double tolerance);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_CHECKPOINT_DIFFERENCE_H_
