#include "worker/local/updating_model.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"

namespace parasol {
namespace {

class UpdatingModel : public Model {
 public:
  UpdatingModel(std::unique_ptr<Model> model, DeviceVariables& updated,
                DeviceTables* updated_tables)
      : model_(std::move(model)),
        updated_(updated),
        updated_tables_(updated_tables) {
    if (updated_tables != nullptr) {
      model_->device_training()->UseTables(*updated_tables);
    }
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
      RETURN_IF_ERROR(updated_.Await());
    }
    return model_->Stage(batch, staged);
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    last_trained_ = &staged;
    return model_->device_training()->Train(
        staged, seed,
        {.update =
             [this](absl::Span<const DeviceTraining::Rows> rows) {
               return Update(rows);
             },
         .rows = sinks.rows});
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return model_->Evaluate(staged);
  }

 private:
  absl::Status Update(absl::Span<const DeviceTraining::Rows> rows) {
    RETURN_IF_ERROR(updated_.Update());
    if (rows.empty()) return absl::OkStatus();
    return updated_tables_->Update(rows);
  }

  const std::unique_ptr<Model> model_;
  DeviceVariables& updated_;
  DeviceTables* const updated_tables_;
  const StagedBatch* last_trained_ = nullptr;
  const std::vector<VariableSpec> none_;
};

}  // namespace

std::unique_ptr<Model> UpdateOnDevice(std::unique_ptr<Model> model,
                                      DeviceVariables& variables,
                                      DeviceTables* tables) {
  return std::make_unique<UpdatingModel>(std::move(model), variables, tables);
}

}  // namespace parasol
