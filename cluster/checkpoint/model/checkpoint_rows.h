#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_ROWS_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/row_file.h"
#include "cluster/checkpoint/model/row_map.h"
#include "ml/initializer/row_initializer.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// A sparse table as a checkpoint holds it. A row that the checkpoint lacks has
// the initial values of a new row. Not thread-safe.
//
// The values of all rows, without their slots, are in memory or, if they don't
// fit there, all in a file (RowFile).
class CheckpointRows {
 public:
  struct Limits {
    // Bytes that the rows may have in memory, but for those that the load
    // needs: 16 MiB, or as many as this if that is more.
    size_t memory_bytes = SIZE_MAX;
    // The directory of the file of rows that don't fit.
    std::string directory = {};
    // True for a load after which Sample() may be called.
    bool with_sample = false;
  };

  // Creates the table without rows.
  //   InvalidArgument  the initializer can't be used.
  static absl::StatusOr<CheckpointRows> Create(const job::SparseTable& table,
                                               uint64_t seed);

  // Replaces all rows by the table's rows in `checkpoint`. After an error the
  // table is of no use. Fails as CheckpointReader::ReadRows() and RowFileWriter
  // do, or with
  //   DataLoss  the rows have another width.
  absl::Status Load(const CheckpointReader& checkpoint, const Limits& limits);

  // Takes the rows of `served`, whose last load was of the checkpoint with the
  // manifest `older`, and reads what is newer in `checkpoint`. Both tables
  // share the memory of what has not changed, and may be used by different
  // threads. After an error the table is of no use. Fails as Load() does, and
  // with
  //   FailedPrecondition  the checkpoint does not continue that one, or the
  //                       rows are not in memory, or do not fit there beside
  //                       the rows of `served`: Load().
  absl::Status LoadNewer(const CheckpointReader& checkpoint,
                         const CheckpointRows& served,
                         const durable::CheckpointManifest& older,
                         const Limits& limits);

  // Writes the rows of `ids` to `values`, [ids.size(), width], in the order of
  // `ids`. Fails as RowFile::Read() does; never if the rows are in memory.
  absl::Status Read(absl::Span<const uint64_t> ids, absl::Span<float> values);

  // Returns the values of the rows of the last Load() that RowSample chooses,
  // one row after the other. Fails as Read() does.
  absl::StatusOr<std::vector<float>> Sample();

  // Bytes that the rows, or what finds them in a file, have in memory.
  size_t memory_bytes() const;
  bool is_in_file() const { return file_ != nullptr; }

 private:
  CheckpointRows(std::string name, size_t width, RowInitializer initializer)
      : name_(std::move(name)),
        width_(width),
        initializer_(initializer),
        in_memory_(width) {}
  absl::Status CheckWidth(const CheckpointReader& checkpoint) const;
  // Returns a row's values; null if no layer has it.
  const float* Find(uint64_t id) const;
  // Takes the values of a batch's rows into `rows`.
  //   DataLoss  the rows have another width.
  absl::Status SetAll(const RowBatch& batch, RowMap& rows) const;
  absl::Status Insert(const RowBatch& batch, const Limits& limits,
                      std::unique_ptr<RowFileWriter>& writer);
  absl::Status ReadAll(const CheckpointReader& checkpoint, const Limits& limits,
                       std::unique_ptr<RowFileWriter>& writer);
  // Moves the rows from memory to the file; makes it if there is none.
  absl::Status Spill(const Limits& limits,
                     std::unique_ptr<RowFileWriter>& writer);
  absl::Status FinishFile(RowFileWriter& writer);

  std::string name_;
  size_t width_;
  RowInitializer initializer_;
  std::vector<uint64_t> sampled_;  // ids
  RowMap in_memory_;               // rows that a load has read so far
  // The rows, unless there is a file: a row is the first layer's that has it.
  // Each has more than twice the rows of the one before it.
  std::vector<std::shared_ptr<const RowMap>> layers_;
  std::unique_ptr<RowFile> file_;  // null: the rows are in memory
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_ROWS_H_
