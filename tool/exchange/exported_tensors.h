#ifndef PARASOL_TOOL_EXCHANGE_EXPORTED_TENSORS_H_
#define PARASOL_TOOL_EXCHANGE_EXPORTED_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint_reader.h"
#include "storage/tensor_files/tensor.h"
#include "storage/tensor_files/tensor_writer.h"

namespace parasol {

// Tensors of a checkpoint as files of other programs are to have them: the
// step, the number of updates, each variable and its slots, and of each sparse
// table ids, rows and the rows' slots, in parts of some MiB.
class ExportedTensors {
 public:
  struct Options {
    // True to have the optimizers' slots, too, without which training can't go
    // on as it was.
    bool slots = true;
    // True to have the numbers of steps and updates.
    bool counts = true;
    // True to have the moving averages in place of the variables that have
    // them, as they are evaluated.
    bool averages = true;
    // kUint64, or kInt64 for readers that lack it: the same bits.
    ElementType ids = ElementType::kUint64;
    // Memory for one part of a table.
    size_t part_bytes = 16 << 20;
  };

  // Counts the rows of the tables, which reads them once. `checkpoint` must
  // outlive this object. Fails as reading it does.
  static absl::StatusOr<ExportedTensors> Plan(
      const CheckpointReader& checkpoint, const Options& options);

  // The parts, by Keras's names, in the order in which Write() writes them.
  const std::vector<TensorPart>& parts() const { return parts_; }

  // Writes all elements to `writer`, which has these parts, perhaps under other
  // names, and verifies the checkpoint's files. The memory that this needs does
  // not grow with the model. Fails as reading and writing do.
  absl::Status Write(TensorWriter& writer) const;

 private:
  // The rows of one table, and how they are cut.
  struct Table {
    int64_t rows = 0;
    int64_t rows_of_part = 0;
  };

  ExportedTensors(const CheckpointReader& checkpoint, const Options& options)
      : checkpoint_(&checkpoint), options_(options) {}
  absl::Status AddVariables();
  absl::Status AddTable(int index);
  // Returns the number of the array that is written for array `array`.
  absl::StatusOr<int> SourceOf(const durable::CheckpointVariable& variable,
                               int array) const;
  int ArraysOf(int slots) const { return options_.slots ? 1 + slots : 1; }
  // Returns the widths of the arrays of a table that are written.
  std::vector<size_t> WidthsOf(const durable::CheckpointTable& table) const;
  absl::Status WriteVariables(TensorWriter& writer) const;
  absl::Status WriteTable(int index, TensorWriter& writer) const;

  const CheckpointReader* checkpoint_;
  Options options_;
  std::vector<TensorPart> parts_;
  std::vector<Table> tables_;  // order of the manifest's
  int64_t updates_ = 0;        // largest number that anything has had
};

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_EXPORTED_TENSORS_H_
