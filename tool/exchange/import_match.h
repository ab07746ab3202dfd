#ifndef PARASOL_TOOL_EXCHANGE_IMPORT_MATCH_H_
#define PARASOL_TOOL_EXCHANGE_IMPORT_MATCH_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "proto/job.pb.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// Tensors of a file that a job's variables and tables are read from. Indices
// count the file's tensors.
struct ImportMatch {
  struct Variable {
    size_t value = 0;
    // One for each slot; nullopt: the slot begins anew.
    std::vector<std::optional<size_t>> slots = {};
  };
  struct Table {
    size_t ids = 0;
    size_t rows = 0;
    std::vector<std::optional<size_t>> slots = {};
  };

  std::vector<Variable> variables = {};  // order of the contents
  std::vector<Table> tables = {};        // order of the contents
  // Scalars: steps that were done, and updates that the optimizer has made.
  std::optional<size_t> global_step = {};
  std::optional<size_t> iterations = {};
  // True if the file has no slot of any kind, though the job has some.
  bool lacks_all_slots = false;
  // True if it has some.
  bool has_slots = false;
};

// Finds the tensors of `job`, whose checkpoints have `contents`, by Keras's
// names, as tensor_names.h, Keras's newer optimizers ("Adam/m/hidden/kernel")
// and files with "model/" and "optimizer/" in front have them. Scalars and
// states of random numbers that belong to nothing are left out; so is every
// other tensor that is too many if `allow_surplus`.
//   InvalidArgument  names all tensors that are missing, of another shape or
//                    type, or too many.
absl::StatusOr<ImportMatch> MatchTensors(const std::vector<TensorInfo>& tensors,
                                         const CheckpointContents& contents,
                                         const job::Job& job,
                                         bool allow_surplus);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_IMPORT_MATCH_H_
