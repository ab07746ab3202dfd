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

// A sparse table of a worker that has no cluster: rows have the values that
// those of a ps have after the same pushes, to the bit, and go to and come from
// the same checkpoints. A row costs its values and slots, and some 25 bytes.
// Not thread-safe.
class LocalRows {
 public:
  // `of_job`: the optimizer of a table that names none.
  //   InvalidArgument  its optimizer, initializer or width can't be used: names
  //                    the table.
  static absl::StatusOr<std::unique_ptr<LocalRows>> Create(
      const job::SparseTable& table, const job::Optimizer& of_job,
      uint64_t seed);

  // Writes the rows of `ids` to `values`, [ids.size(), width], in order; those
  // that are missing are made.
  void Pull(absl::Span<const uint64_t> ids, absl::Span<float> values);

  // One update of the table, perhaps by no rows. Gradients of one id are summed
  // first, in their order.
  void Push(absl::Span<const uint64_t> ids, absl::Span<const float> gradients);

  const std::string& name() const { return name_; }

  absl::Status Save(ShardWriter& writer) const;
  // For a table without rows; on an error it is of no use.
  //   InvalidArgument  the checkpoint's rows have another width or other slots.
  //   NotFound, DataLoss  as for CheckpointReader::ReadRows(), and if it has a
  //                    row twice.
  absl::Status Restore(const CheckpointReader& checkpoint);
  // For the manifest.
  durable::CheckpointTable Describe() const;

 private:
  LocalRows(std::string name, size_t width, RowInitializer initializer,
            std::unique_ptr<const Optimizer> optimizer);

  float* Row(size_t number) const {
    return blocks_[number / rows_per_block_].get() +
           number % rows_per_block_ * floats_;
  }
  // The row's number; a row that is missing is made.
  size_t FindOrMake(uint64_t id);
  size_t Add(uint64_t id);
  absl::Status Insert(const RowBatch& batch);
  void UpdateOtherRows(const std::vector<bool>& touched);

  const std::string name_;
  const size_t width_;
  const RowInitializer initializer_;
  const std::unique_ptr<const Optimizer> optimizer_;
  const size_t floats_;  // of a row: values, then each slot's
  const size_t rows_per_block_;

  int64_t updates_ = 0;
  // Rows are numbered as they were made.
  absl::flat_hash_map<uint64_t, size_t> numbers_;
  std::vector<uint64_t> ids_;
  std::vector<std::unique_ptr<float[]>> blocks_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_ROWS_H_
