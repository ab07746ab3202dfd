#ifndef PARASOL_CLUSTER_CHECKPOINT_WARM_SOURCE_H_
#define PARASOL_CLUSTER_CHECKPOINT_WARM_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace parasol {

// The values of a model that was trained before, without slots. Memory does not
// grow with the model. Not thread-safe.
class WarmSource {
 public:
  struct Variable {
    std::string name = {};
    std::vector<int64_t> shape = {};
  };
  struct Table {
    std::string name = {};
    int64_t width = 0;
    // Index of the variable that the rows are, too, if they are one.
    std::optional<size_t> variable = {};
  };
  // Function that takes some rows, [ids.size(), width]; an error ends the
  // reading.
  using RowsVisit = absl::FunctionRef<absl::Status(
      absl::Span<const uint64_t> ids, absl::Span<const float> rows)>;

  // Opens the checkpoint at CheckpointAt(path), in which variables with a
  // moving average are the average; or the files that FormatOfFilesAt() knows
  // as tensors of other programs, in an object store one file.
  //   InvalidArgument  there is none, or it is damaged; the message names the
  //                    path.
  //   Unavailable, PermissionDenied, …  the file system refuses.
  static absl::StatusOr<std::unique_ptr<WarmSource>> Open(
      const std::string& path);
  virtual ~WarmSource() = default;

  const std::vector<Variable>& variables() const { return variables_; }
  const std::vector<Table>& tables() const { return tables_; }
  // Returns what the log names: "checkpoint /old/ckpt-500".
  const std::string& description() const { return description_; }

  // Fills `out` with the elements of a variable from number `first` on. Fails
  // as Open() does, and with DataLoss for damage that shows now.
  virtual absl::Status Read(size_t variable, int64_t first,
                            absl::Span<float> out) = 0;
  // Calls `visit` with each row of a table once. Fails as Open() and `visit`
  // do.
  virtual absl::Status VisitRows(size_t table, RowsVisit visit) = 0;
  // Verifies what was read. Call it last. Fails as Open() does.
  virtual absl::Status Verify() = 0;

 protected:
  std::vector<Variable> variables_;
  std::vector<Table> tables_;
  std::string description_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_WARM_SOURCE_H_
