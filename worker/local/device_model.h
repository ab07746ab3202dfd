#ifndef PARASOL_WORKER_LOCAL_DEVICE_MODEL_H_
#define PARASOL_WORKER_LOCAL_DEVICE_MODEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "ml/model/model.h"

namespace parasol {

// A model whose variables stay in its device's memory: it has none to pull, to
// upload or to push. Subclasses make the passes.
class DeviceModel : public Model {
 public:
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

 protected:
  // Requires model->device_training().
  explicit DeviceModel(std::unique_ptr<Model> model)
      : model_(std::move(model)) {
    CHECK(model_->device_training() != nullptr);
  }

  Model& model() { return *model_; }

 private:
  const std::unique_ptr<Model> model_;
  const std::vector<VariableSpec> none_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_DEVICE_MODEL_H_
