#ifndef PARASOL_WORKER_STORE_PARAMETER_STORE_H_
#define PARASOL_WORKER_STORE_PARAMETER_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/rows/row_snapshot.h"
#include "cluster/rows/row_table.h"
#include "ml/layer/variable_spec.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_writer.h"
#include "worker/store/host_variables.h"
#include "worker/store/stored_variables.h"
#include "worker/store/table/tables_elsewhere.h"

namespace parasol {

// A copy of variables and their slots, and the rows of tables as RowSnapshot
// has them, with their numbers of updates.
class StoreSnapshot {
 public:
  // Writes everything to a checkpoint's only file, rows once: call it once.
  absl::Status Write(ShardWriter& writer) &&;

 private:
  friend class ParameterStore;
  struct Array {
    std::string variable;
    int array = 0;
    int64_t updates = 0;
    std::vector<float> elements;
  };

  std::vector<Array> arrays_;  // ascending by the variables' names
  std::vector<RowSnapshot> tables_;
};

// The variables and sparse tables that a worker has itself. It has the
// interface, the optimizers, the tables and the checkpoints of a ps: after the
// same pushes it holds the same values, to the bit. A push is applied, and a
// pull copied, before the call returns. Variables and tables are in host memory
// unless the caller has them elsewhere. Not thread-safe, unless a function says
// so.
class ParameterStore : public TrainingParameters {
 public:
  // Creates the variables with their initial values, and the job's tables
  // without rows.
  //   InvalidArgument  an optimizer, an initializer or a table's width can't be
  //                    used.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Create(
      const std::vector<VariableSpec>& variables, const job::Job& job);
  // Creates the variables alone: ps have the job's tables. Checkpoints have
  // both, and the tables' rows are neither read nor written.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> CreateWithoutTables(
      const std::vector<VariableSpec>& variables, const job::Job& job);
  // Gives `variables` their initial values, and starts `tables` (null: all are
  // in host memory). Borrows both. Their owner updates them: they can be
  // pulled, but not pushed.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> Create(
      StoredVariables& variables, const job::Job& job,
      TablesElsewhere* tables = nullptr);

  using TrainingParameters::Pull;
  using TrainingParameters::Push;
  // Pulls may run at once on several threads, while nothing is pushed.
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  std::unique_ptr<Pending> Push(PushRequest request) override;

  // Return what it holds, for copies to and from another process.
  StoredVariables& variables() { return variables_; }
  RowTable& table(size_t table) { return *tables_[table]; }

  size_t num_variables() const { return variables_.specs().size(); }
  size_t num_tables() const { return tables_.size(); }

  // Applies the gradient of some of a variable's elements, from `first` on. The
  // update is complete when each element has had its gradient and CountUpdate()
  // was called. Threads may apply gradients of different elements at once. An
  // optimizer that needs a whole variable gets all of it in one call.
  void ApplyBlock(size_t variable, size_t first,
                  absl::Span<const float> gradient);
  void CountUpdate(size_t variable);
  // Makes one update of a table. `counts`: as RowGradient has them. Returns
  // errors of RowTable::Push().
  absl::Status ApplyRows(size_t table, absl::Span<const uint64_t> ids,
                         absl::Span<const float> gradients,
                         absl::Span<const uint32_t> counts = {});

  // Writes values, slots and update counts to a checkpoint's only file.
  absl::Status Save(ShardWriter& writer) const;
  // Returns a copy of what Save() writes, so that updates may go on while it is
  // written: it takes as much memory as values and slots of the variables, and
  // for tables what RowSnapshot says.
  //   any  errors of StoredVariables::Read().
  absl::StatusOr<StoreSnapshot> TakeSnapshot() const;
  // Reads a checkpoint of any cluster, whatever its number of shards, into
  // tables without rows. After an error the object must not be used.
  //   InvalidArgument  the checkpoint is of another model or optimizer: errors
  //                    of CheckResumable(). Nothing has been read.
  //   any other        as for CheckpointReader.
  absl::Status Restore(const CheckpointReader& checkpoint);
  // Returns the values of the rows that RowSample chooses among a table's, one
  // row after the other.
  //   Unavailable  the device was lost.
  absl::StatusOr<std::vector<float>> SampleRows(size_t table);
  // Returns the variables and tables as the manifest of a checkpoint lists
  // them.
  const CheckpointContents& contents() const { return contents_; }
  const job::Job& job() const { return job_; }

 private:
  friend std::unique_ptr<ParameterStore> StoreLike(const ParameterStore& other);
  friend std::unique_ptr<ParameterStore> StoreOf(StoredVariables& variables,
                                                 const job::Job& job);

  ParameterStore(StoredVariables& variables, const job::Job& job)
      : job_(job), variables_(variables) {}
  Awaited Unanswered() const override { return {}; }
  void Stop() override {}
  // Creates the parameters without any table.
  static absl::StatusOr<std::unique_ptr<ParameterStore>> CreateVariables(
      StoredVariables& variables, const job::Job& job);
  absl::Status AddTable(const job::SparseTable& spec);
  absl::Status PullVariable(const Target& target);
  absl::Status PullRows(const RowTarget& rows);
  bool IsElsewhere(size_t table) const {
    return elsewhere_ != nullptr && elsewhere_->Has(table);
  }
  absl::Status SaveTable(size_t table, ShardWriter& writer) const;
  absl::Status RestoreTable(size_t table, const CheckpointReader& checkpoint);

  const job::Job job_;
  CheckpointContents contents_;
  StoredVariables& variables_;
  std::unique_ptr<HostVariables> host_variables_;  // null: they are elsewhere
  TablesElsewhere* elsewhere_ = nullptr;
  // A table that is elsewhere has no rows here.
  std::vector<std::unique_ptr<RowTable>> tables_;
};

// Returns a store in host memory with the same variables as `other` has and its
// optimizers: arrays of zeros. `other` has no tables.
std::unique_ptr<ParameterStore> StoreLike(const ParameterStore& other);
// Returns a store of variables that it borrows, whose owner has given them
// values and optimizers and updates them: for checkpoints, and for copies to
// and from other processes.
std::unique_ptr<ParameterStore> StoreOf(StoredVariables& variables,
                                        const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_PARAMETER_STORE_H_
