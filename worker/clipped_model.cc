#include "worker/clipped_model.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/optimizer/clip.h"

namespace parasol {
namespace {

class ClippedModel : public Model {
 public:
  ClippedModel(std::unique_ptr<Model> model, const job::Optimizer& limits)
      : model_(std::move(model)), limits_(limits) {
    for (auto& side : clipped_) side.resize(model_->variables().size());
  }

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

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    std::swap(clipped_[0], clipped_[1]);
    std::vector<size_t> waiting;
    const auto clip = [&](size_t variable, absl::Span<const float> gradient) {
      const absl::Span<float> clipped = ClipOne(variable, gradient);
      if (limits_.has_global_clipnorm()) {
        waiting.push_back(variable);
      } else {
        sinks.variable(variable, clipped);
      }
    };
    ASSIGN_OR_RETURN(const BatchResult result,
                     model_->Gradients(staged, seed,
                                       {.variable = clip, .rows = sinks.rows}));
    ClipTogether(waiting);
    for (const size_t variable : waiting) {
      sinks.variable(variable, Clipped(variable));
    }
    return result;
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return model_->Evaluate(staged);
  }

 private:
  absl::Span<float> Clipped(size_t variable) {
    return absl::MakeSpan(clipped_[0][variable]);
  }

  absl::Span<float> ClipOne(size_t variable, absl::Span<const float> gradient) {
    clipped_[0][variable].assign(gradient.begin(), gradient.end());
    if (limits_.has_clipvalue()) {
      ClipByValue(limits_.clipvalue(), Clipped(variable));
    }
    if (limits_.has_clipnorm()) {
      ClipByNorm(limits_.clipnorm(), Clipped(variable));
    }
    return Clipped(variable);
  }

  void ClipTogether(absl::Span<const size_t> variables) {
    if (variables.empty()) return;
    std::vector<absl::Span<float>> gradients;
    for (const size_t variable : variables) {
      gradients.push_back(Clipped(variable));
    }
    ClipByGlobalNorm(limits_.global_clipnorm(), gradients);
  }

  const std::unique_ptr<Model> model_;
  const job::Optimizer limits_;
  // Of this step and of the last one, by variable: as long as the model's own.
  std::array<std::vector<std::vector<float>>, 2> clipped_;
};

}  // namespace

std::unique_ptr<Model> ClipGradients(std::unique_ptr<Model> model,
                                     const job::Optimizer& optimizer) {
  if (!optimizer.has_clipvalue() && !optimizer.has_clipnorm() &&
      !optimizer.has_global_clipnorm()) {
    return model;
  }
  return std::make_unique<ClippedModel>(std::move(model), optimizer);
}

}  // namespace parasol
