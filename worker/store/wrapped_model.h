#ifndef PARASOL_WORKER_STORE_WRAPPED_MODEL_H_
#define PARASOL_WORKER_STORE_WRAPPED_MODEL_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/model/model.h"

namespace parasol {

// Base of a model that stands before another one. What a subclass does not
// change, but for the passes, goes to that one.
class WrappedModel : public Model {
 public:
  const std::vector<VariableSpec>& variables() const override {
    return model_->variables();
  }
  const std::vector<TableUse>& tables() const override {
    return model_->tables();
  }
  absl::Span<float> HostValue(size_t index) override {
    return model_->HostValue(index);
  }
  absl::Status Upload(size_t index) override { return model_->Upload(index); }
  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return model_->NewStagedBatch();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    return model_->Stage(batch, staged);
  }

 protected:
  explicit WrappedModel(std::unique_ptr<Model> model)
      : model_(std::move(model)) {}

  Model& model() { return *model_; }

 private:
  const std::unique_ptr<Model> model_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_WRAPPED_MODEL_H_
