#ifndef PARASOL_WORKER_LOCAL_ROWS_H_
#define PARASOL_WORKER_LOCAL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/initializer/row_initializer.h"
#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_writer.h"

namespace parasol {

// A sparse table of a worker that has no cluster. After the same pushes a row
// has the same values as on a ps, to the bit. Checkpoints are interchangeable
// with those of a ps. A row takes its values and slots, and some 25 bytes. Not
// thread-safe.
class LocalRows {
 public:
  // `of_job` is the optimizer of a table that names none.
  //   InvalidArgument  the table's optimizer, initializer or width can't be
  //                    used; the message names the table.
  static absl::StatusOr<std::unique_ptr<LocalRows>> Create(
      const job::SparseTable& table, const job::Optimizer& of_job,
      uint64_t seed);

  // Writes the rows of `ids` to `values`, [ids.size(), width], in the order of
  // `ids`. Creates the rows that are missing.
  void Pull(absl::Span<const uint64_t> ids, absl::Span<float> values);

  // Applies one update of the table; `ids` may be empty. The gradients of one
  // id are summed first, in their order.
  void Push(absl::Span<const uint64_t> ids, absl::Span<const float> gradients);

  const std::string& name() const { return name_; }

  absl::Status Save(ShardWriter& writer) const;
  // Reads the rows of `checkpoint` into a table that has none. After an error
  // the table must not be used.
  //   InvalidArgument  the checkpoint's rows have another width or other slots.
  //   NotFound, DataLoss  as for CheckpointReader::ReadRows(), and if the
  //                    checkpoint has a row twice.
  absl::Status Restore(const CheckpointReader& checkpoint);
  // Returns the manifest's entry for this table.
  durable::CheckpointTable Describe() const;

 private:
  LocalRows(std::string name, size_t width, RowInitializer initializer,
            std::unique_ptr<const Optimizer> optimizer);

  float* Row(size_t number) const {
    return blocks_[number / rows_per_block_].get() +
           number % rows_per_block_ * floats_;
  }
  // Returns the row's number; creates a row that is missing.
  size_t FindOrMake(uint64_t id);
  size_t Add(uint64_t id);
  absl::Status Insert(const RowBatch& batch);
  void UpdateOtherRows(const std::vector<bool>& touched);

  const std::string name_;
  const size_t width_;
  const RowInitializer initializer_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const size_t floats_;  // floats of a row: values, then slots
  const size_t rows_per_block_;

  int64_t updates_ = 0;
  // Row numbers by id; rows are numbered in the order of their creation.
  absl::flat_hash_map<uint64_t, size_t> numbers_;
  std::vector<uint64_t> ids_;
  std::vector<std::unique_ptr<float[]>> blocks_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_ROWS_H_
