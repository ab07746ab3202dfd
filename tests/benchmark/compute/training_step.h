#ifndef PARASOL_TESTS_BENCHMARK_COMPUTE_TRAINING_STEP_H_
#define PARASOL_TESTS_BENCHMARK_COMPUTE_TRAINING_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/device_training.h"
#include "ml/model/model.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "worker/store/device_variables.h"
#include "worker/store/parameter_store.h"
#include "worker/store/table/device_tables.h"

namespace parasol {

// A training step on one batch again and again, with SGD. Borrows the device
// and the batch.
class TrainingStep {
 public:
  // Place of variables and tables and of their updates.
  enum class Updates {
    // Host memory, as for a worker of a cluster: values go to the device, and
    // gradients come back.
    kOnHost,
    // Memory of the device if it can update them, as for a worker without a
    // cluster on a CUDA device; else host memory. Two staged batches take
    // turns.
    kOnDevice,
  };

  static absl::StatusOr<std::unique_ptr<TrainingStep>> Create(
      const job::Model& spec, const Batch& batch, Device& device,
      Updates updates = Updates::kOnHost);

  // Returns the mean loss of the batch before the update.
  absl::StatusOr<double> Run();

 private:
  explicit TrainingStep(const Batch& batch) : batch_(batch) {}

  absl::Status Initialize();
  absl::Status InitializeValues();
  // Leaves the variables and tables to the device from now on.
  absl::Status UpdateOnDevice(const job::Model& spec, DeviceTraining& training,
                              Device& device);
  absl::Status UploadValues();
  void LookUpRows(const StagedBatch& staged);
  void Apply(size_t variable, absl::Span<const float> gradient);
  void ApplyRows(size_t table, absl::Span<const uint64_t> ids,
                 absl::Span<const float> gradients);

  const Batch& batch_;
  // Null if variables are updated on the host. The model borrows both.
  std::unique_ptr<DeviceVariables> on_device_;
  std::unique_ptr<DeviceTables> tables_on_device_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<StagedBatch>> staged_;
  // Starts the tables on the device.
  std::unique_ptr<ParameterStore> parameters_;
  std::unique_ptr<const Optimizer> trained_;
  std::unique_ptr<const Optimizer> untrained_;  // moving means
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> tables_;  // row `id` at id · width
  std::vector<float*> touched_rows_;
  int64_t steps_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COMPUTE_TRAINING_STEP_H_
