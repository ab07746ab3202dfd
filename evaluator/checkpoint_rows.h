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

// A sparse table as a checkpoint holds it. A row that the checkpoint lacks has
// the initial values of a new row. Not thread-safe.
//
// The values of all rows, without their slots, are held in memory: 4 bytes for
// each value and some 30 for each row.
class CheckpointRows {
 public:
  // Creates the table without rows.
  //   InvalidArgument  the initializer can't be used.
  static absl::StatusOr<CheckpointRows> Create(const job::SparseTable& table,
                                               uint64_t seed);

  // Replaces all rows by those of `checkpoint`. Errors are those of
  // CheckpointReader::ReadRows(), and
  //   DataLoss  the rows have another width.
  absl::Status Load(const CheckpointReader& checkpoint);

  // Writes the rows of `ids` to `values`, [ids.size(), width], in the order of
  // `ids`.
  void Read(absl::Span<const uint64_t> ids, absl::Span<float> values) const;

 private:
  CheckpointRows(std::string name, size_t width, RowInitializer initializer)
      : name_(std::move(name)), width_(width), initializer_(initializer) {}
  absl::Status Insert(const RowBatch& batch);

  std::string name_;
  size_t width_;
  RowInitializer initializer_;
  // Index in `values_` of each row's first value, by id.
  absl::flat_hash_map<uint64_t, size_t> places_;
  std::vector<float> values_;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_CHECKPOINT_ROWS_H_
