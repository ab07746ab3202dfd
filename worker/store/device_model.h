#ifndef PARASOL_WORKER_STORE_DEVICE_MODEL_H_
#define PARASOL_WORKER_STORE_DEVICE_MODEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "ml/model/model.h"
#include "worker/store/wrapped_model.h"

namespace parasol {

// A model whose variables stay in its device's memory: it has none to pull, to
// upload or to push. Subclasses make the passes.
class DeviceModel : public WrappedModel {
 public:
  const std::vector<VariableSpec>& variables() const override { return none_; }
  absl::Span<float> HostValue(size_t index) override {
    CHECK_LT(index, none_.size());
    return {};
  }
  absl::Status Upload(size_t index) override {
    CHECK_LT(index, none_.size());
    return absl::OkStatus();
  }

 protected:
  // Requires model->device_training().
  explicit DeviceModel(std::unique_ptr<Model> model)
      : WrappedModel(std::move(model)) {
    CHECK(this->model().device_training() != nullptr);
  }

 private:
  const std::vector<VariableSpec> none_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_DEVICE_MODEL_H_
