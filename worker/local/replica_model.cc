#include "worker/local/replica_model.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"

namespace parasol {
namespace {

class ReplicaModel : public Model {
 public:
  ReplicaModel(std::unique_ptr<Model> model, Device& device)
      : model_(std::move(model)), device_(device) {
    CHECK(model_->device_training() != nullptr);
    CHECK(model_->tables().empty());
  }

  const std::vector<VariableSpec>& variables() const override { return none_; }
  const std::vector<TableUse>& tables() const override {
    return model_->tables();
  }
  absl::Span<float> HostValue(size_t index) override {
    CHECK_LT(index, none_.size());
    return {};
  }
  absl::Status Upload(size_t index) override {
    CHECK_LT(index, none_.size());
    return absl::OkStatus();
  }
  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return model_->NewStagedBatch();
  }
  // The device may still read the batch that was trained on last; not the one
  // before it.
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    if (&staged == last_trained_) {
      RETURN_IF_ERROR(device_.Synchronize());
    }
    return model_->Stage(batch, staged);
  }
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    last_trained_ = &staged;
    return model_->device_training()->Train(
        staged, seed,
        {.update =
             [](absl::Span<const DeviceTraining::Rows>) {
               return absl::OkStatus();
             },
         .rows = sinks.rows});
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return model_->Evaluate(staged);
  }
  DeviceTraining* device_training() override {
    return model_->device_training();
  }

 private:
  const std::unique_ptr<Model> model_;
  Device& device_;
  const StagedBatch* last_trained_ = nullptr;
  const std::vector<VariableSpec> none_;
};

}  // namespace

std::unique_ptr<Model> KeepOnDevice(std::unique_ptr<Model> model,
                                    Device& device) {
  return std::make_unique<ReplicaModel>(std::move(model), device);
}

}  // namespace parasol
