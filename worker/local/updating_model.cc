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
    const absl::Status status = model_->Stage(batch, staged);
    return MayRetry(status) ? model_->Stage(batch, staged) : status;
  }

  // A pass that the device had no memory for has changed no variable and no
  // row, unless the updates were reached.
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    last_trained_ = &staged;
    has_updated_ = false;
    absl::StatusOr<BatchResult> result = Train(staged, seed, sinks);
    if (has_updated_ || !MayRetry(result.status())) return result;
    return Train(staged, seed, sinks);
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    absl::StatusOr<EvaluatedBatch> evaluated = model_->Evaluate(staged);
    return MayRetry(evaluated.status()) ? model_->Evaluate(staged) : evaluated;
  }

 private:
  // Returns true if what has failed for lack of memory has more of it now.
  bool MayRetry(const absl::Status& status) {
    return absl::IsResourceExhausted(status) && updated_tables_ != nullptr &&
           updated_tables_->FreeReserve();
  }

  absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                    const GradientSinks& sinks) {
    return model_->device_training()->Train(
        staged, seed,
        {.update =
             [this](absl::Span<const DeviceTraining::Rows> rows) {
               return Update(rows);
             },
         .rows = sinks.rows});
  }

  absl::Status Update(absl::Span<const DeviceTraining::Rows> rows) {
    has_updated_ = true;
    RETURN_IF_ERROR(updated_.Update());
    if (rows.empty()) return absl::OkStatus();
    return updated_tables_->Update(rows);
  }

  const std::unique_ptr<Model> model_;
  DeviceVariables& updated_;
  DeviceTables* const updated_tables_;
  const StagedBatch* last_trained_ = nullptr;
  bool has_updated_ = false;  // true once the last pass's updates have begun
  const std::vector<VariableSpec> none_;
};

}  // namespace

std::unique_ptr<Model> UpdateOnDevice(std::unique_ptr<Model> model,
                                      DeviceVariables& variables,
                                      DeviceTables* tables) {
  return std::make_unique<UpdatingModel>(std::move(model), variables, tables);
}

}  // namespace parasol
