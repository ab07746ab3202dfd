#ifndef PARASOL_ML_INITIALIZER_ROW_INITIALIZER_H_
#define PARASOL_ML_INITIALIZER_ROW_INITIALIZER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/initializer/philox.h"
#include "proto/job.pb.h"

namespace parasol {

// Initial values of a sparse table's rows. The values of a row depend only on
// (seed, table, initializer, width, id): Philox4x32-10 keyed by seed and table,
// counted by id, group of four columns and draw; 32 random bits a value. A
// table whose values are kept in bfloat16 has them rounded to it.
// Immutable; thread-safe.
class RowInitializer {
 public:
  // Returns the initializer of the table `table`. Computes fans of the shape
  // [1, width], because a table has no fixed number of rows.
  //   InvalidArgument  the initializer is not set, or a parameter is out of
  //                    range.
  static absl::StatusOr<RowInitializer> Create(
      const job::Initializer& initializer, uint64_t seed,
      absl::string_view table, size_t width,
      job::SparseTable::Values values = job::SparseTable::FLOAT32);

  // Writes the `width` values of row `id`.
  void Fill(uint64_t id, float* values) const;

 private:
  enum class Kind { kConstant, kUniform, kNormal, kTruncatedNormal };

  RowInitializer(PhiloxKey key, size_t width) : key_(key), width_(width) {}
  void FillExactly(uint64_t id, float* values) const;
  void FillUniform(uint64_t id, float* values) const;
  void FillNormal(uint64_t id, float* values) const;

  PhiloxKey key_;
  size_t width_;
  Kind kind_ = Kind::kConstant;
  // Offset and factor of each value, which is offset_ + scale_ * x. x is 0,
  // uniform in [0, 1), standard normal, or standard normal cut off at ±2.
  double offset_ = 0;
  double scale_ = 0;
  bool rounds_ = false;
};

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_ROW_INITIALIZER_H_
