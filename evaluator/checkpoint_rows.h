#ifndef PARASOL_EVALUATOR_CHECKPOINT_ROWS_H_
#define PARASOL_EVALUATOR_CHECKPOINT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/initializer/row_initializer.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// A sparse table as a checkpoint has it. A row that is not there has the values
// that it would be made with. Not thread-safe.
//
// All rows' values are held in memory, without their slots: 4 bytes a value and
// some 30 a row.
class CheckpointRows {
 public:
  //   InvalidArgument  the initializer can't be used.
  static absl::StatusOr<CheckpointRows> Create(const job::SparseTable& table,
                                               uint64_t seed);

  // Replaces all rows. Errors are those of CheckpointReader::ReadRows(), and
  //   DataLoss  the rows have another width.
  absl::Status Load(const CheckpointReader& checkpoint);

  // Writes the rows of `ids` to `values`, [ids.size(), width], in order.
  void Read(absl::Span<const uint64_t> ids, absl::Span<float> values) const;

 private:
  CheckpointRows(std::string name, size_t width, RowInitializer initializer)
      : name_(std::move(name)), width_(width), initializer_(initializer) {}
  absl::Status Insert(const RowBatch& batch);

  std::string name_;
  size_t width_;
  RowInitializer initializer_;
  // Where a row begins in `values_`, by id.
  absl::flat_hash_map<uint64_t, size_t> places_;
  std::vector<float> values_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_CHECKPOINT_ROWS_H_
