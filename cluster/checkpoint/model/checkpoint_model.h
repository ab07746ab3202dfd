#ifndef PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_MODEL_H_
#define PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/model/checkpoint_rows.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"

namespace parasol {

// A job's model on one device with a checkpoint's values, whose sparse tables
// are in memory, or in files as far as they don't fit there. A row that the
// checkpoint lacks has its initial values. Not thread-safe.
class CheckpointModel {
 public:
  struct Options {
    // The arguments of Device::Open().
    std::string device = "auto";
    int threads = 1;
    // Bytes that the rows of all tables may have in memory together. A table
    // that does not fit beside those before it is kept in a file, as a whole.
    size_t table_memory = SIZE_MAX;
    // The directory of these files.
    std::string table_dir = {};
    // True if SampleRows() may be called after a load.
    bool with_samples = false;
  };

  // Creates the model of `job`, whose graph is `graph`, without values. Fails
  // as Device::Open(), Model::Create() and CheckpointRows::Create() do.
  static absl::StatusOr<std::unique_ptr<CheckpointModel>> Create(
      const job::Job& job, const Graph& graph, const Options& options);

  // Is called with a variable's number and the values that are evaluated.
  using VisitValues = absl::FunctionRef<void(size_t, absl::Span<const float>)>;

  // Loads the values of the checkpoint in `directory` into the model, and reads
  // its sparse tables. `visit` sees each variable on the way, also if the
  // checkpoint turns out to be damaged.
  //   NotFound   the checkpoint does not exist, or no longer.
  //   DataLoss   it is damaged, or lacks values of this model.
  //   any other  as for CheckpointReader::Open() and RowFileWriter.
  absl::StatusOr<durable::CheckpointManifest> Load(
      const std::string& directory,
      VisitValues visit = [](size_t, absl::Span<const float>) {}) {
    return LoadBehind(nullptr, directory, visit);
  }

  // Loads the checkpoint as Load() does, without bringing files of a store that
  // the load before or the one of `served` has brought, but of the tables only
  // what is newer in it than in `served`'s, if it has the files of that and
  // increments behind them. The rest of the rows is shared. `served`, which may
  // be null, may be used by another thread meanwhile, but not loaded.
  absl::StatusOr<durable::CheckpointManifest> LoadBehind(
      const CheckpointModel* served, const std::string& directory,
      VisitValues visit = [](size_t, absl::Span<const float>) {});

  // Returns true if the last load has read only what is newer of the tables.
  bool shares_rows() const { return shares_rows_; }

  // Writes the values of the rows that a staged batch reads. Fails as
  // CheckpointRows::Read() does.
  absl::Status ReadRows(absl::Span<const StagedBatch::Rows> tables);

  // Returns the values of some rows of a table, as CheckpointRows::Sample().
  absl::StatusOr<std::vector<float>> SampleRows(size_t table) {
    return tables_[table].Sample();
  }

  // Runs the forward pass of `batch`, whose labels the model's loss must
  // accept, with the values of the last Load(). Returns the outputs
  // [batch.size, outputs of the last layer], valid until the next call. Fails
  // as Model::Stage(), ReadRows() and Model::Evaluate() do.
  absl::StatusOr<absl::Span<const float>> Outputs(const Batch& batch);

  Model& model() { return *model_; }
  const Device& device() const { return *device_; }

 private:
  explicit CheckpointModel(const Options& options) : options_(options) {}
  absl::Status LoadTables(const CheckpointModel* served,
                          const CheckpointReader& checkpoint);

  const Options options_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<StagedBatch> staged_;  // null before the first Outputs()
  std::vector<CheckpointRows> tables_;   // order of the model's tables
  durable::CheckpointManifest loaded_;   // the last load's
  // Reader of the last load's checkpoint, whose files of a store the next one
  // takes; null if it has no increments, or is on a disk.
  std::unique_ptr<CheckpointReader> reader_;
  bool shares_rows_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_MODEL_CHECKPOINT_MODEL_H_
