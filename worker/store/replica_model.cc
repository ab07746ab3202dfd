#include "worker/store/replica_model.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"
#include "worker/store/device_model.h"

namespace parasol {
namespace {

class ReplicaModel : public DeviceModel {
 public:
  ReplicaModel(std::unique_ptr<Model> model, Device& device)
      : DeviceModel(std::move(model)), device_(device) {
    CHECK(this->model().tables().empty());
  }

  // The device may still read the batch that was trained on last; not the one
  // before it.
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    if (&staged == last_trained_) {
      RETURN_IF_ERROR(device_.Synchronize());
    }
    return model().Stage(batch, staged);
  }
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    last_trained_ = &staged;
    return model().device_training()->Train(
        staged, seed,
        {.update =
             [](absl::Span<const DeviceTraining::Rows>) {
               return absl::OkStatus();
             },
         .rows = sinks.rows});
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return model().Evaluate(staged);
  }
  DeviceTraining* device_training() override {
    return model().device_training();
  }

 private:
  Device& device_;
  const StagedBatch* last_trained_ = nullptr;
};

}  // namespace

std::unique_ptr<Model> KeepOnDevice(std::unique_ptr<Model> model,
                                    Device& device) {
  return std::make_unique<ReplicaModel>(std::move(model), device);
}

}  // namespace parasol
