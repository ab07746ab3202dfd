#include "ml/model/model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/kernel/softmax_cross_entropy.h"
#include "ml/model/batch_memory.h"
#include "ml/model/layer.h"
#include "ml/model/resolved_model.h"
#include "ml/model/variable_memory.h"

namespace parasol {
namespace {

// Of one matrix that a batch needs: cuBLAS counts in int.
constexpr int64_t kMaxElements = std::numeric_limits<int32_t>::max();

int64_t WidestLayer(const ResolvedModel& model) {
  int64_t widest = model.inputs();
  for (const ResolvedLayer& layer : model.layers) {
    widest = std::max(widest, layer.outputs);
  }
  return widest;
}

absl::Status CheckShape(const ResolvedModel& model, const Batch& batch) {
  const int64_t largest = kMaxElements / WidestLayer(model);
  if (batch.size <= 0 || batch.size > largest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.size, " examples, not between 1 and ", largest));
  }
  if (batch.dense.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a batch of ", batch.dense.size(), " inputs, the model has 1"));
  }
  const DenseFeature& input = batch.dense.front();
  if (input.shape != model.example_shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("examples are [", absl::StrJoin(input.shape, ", "),
                     "], the model's input is [",
                     absl::StrJoin(model.example_shape, ", "), "]"));
  }
  const size_t features = batch.size * model.inputs();
  if (input.values.size() != features ||
      batch.labels.size() != static_cast<size_t>(batch.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.size, " examples has ",
                     input.values.size(), " features and ", batch.labels.size(),
                     " labels, not ", features, " and ", batch.size));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(int64_t classes, const Batch& batch) {
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    const float label = batch.labels[i];
    if (!(label >= 0 && label < classes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " of example ", i,
                       " of the batch is no class: the model has ", classes));
    }
  }
  return absl::OkStatus();
}

struct CheckedBatch : StagedBatch {
  absl::Span<const Rows> rows() const override { return {}; }
  const Batch* batch = nullptr;
};

class SequentialModel : public Model {
 public:
  SequentialModel(ResolvedModel model, Device& device, VariableMemory variables)
      : model_(std::move(model)),
        device_(device),
        layers_(MakeLayers(model_)),
        first_trained_(FirstTrained()),
        variables_(std::move(variables)),
        batch_(device, model_.inputs(), Outputs()) {}

  const std::vector<VariableSpec>& variables() const override {
    return model_.variables;
  }
  const std::vector<TableUse>& tables() const override { return tables_; }
  absl::Span<float> HostValue(size_t index) override {
    return variables_.HostValue(index);
  }
  absl::Status Upload(size_t index) override {
    return variables_.Upload(index);
  }

  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<CheckedBatch>();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    RETURN_IF_ERROR(CheckShape(model_, batch));
    RETURN_IF_ERROR(CheckLabels(model_.classes(), batch));
    static_cast<CheckedBatch&>(staged).batch = &batch;
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    const Batch& batch = *static_cast<CheckedBatch&>(staged).batch;
    RETURN_IF_ERROR(Forward(batch));
    RETURN_IF_ERROR(variables_.NextGradients());
    const size_t last = layers_.size() - 1;
    RETURN_IF_ERROR(Loss(batch_.output_gradient(last).data));
    RETURN_IF_ERROR(Backward(sinks));
    return Result(batch);
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    const Batch& batch = *static_cast<CheckedBatch&>(staged).batch;
    RETURN_IF_ERROR(Forward(batch));
    RETURN_IF_ERROR(batch_.FetchOutputs());
    RETURN_IF_ERROR(Loss(/*gradient=*/nullptr));
    EvaluatedBatch evaluated;
    ASSIGN_OR_RETURN(evaluated.result, Result(batch));
    evaluated.outputs = batch_.outputs();
    return evaluated;
  }

 private:
  // Layers below have no variables: no gradient needs to get there.
  size_t FirstTrained() const {
    size_t first = 0;
    while (layers_[first]->variables().empty()) ++first;
    return first;
  }

  std::vector<int64_t> Outputs() const {
    std::vector<int64_t> outputs;
    for (const auto& layer : layers_) outputs.push_back(layer->outputs());
    return outputs;
  }

  MatrixView Input(size_t layer) const {
    return layer == 0 ? batch_.input() : batch_.output(layer - 1);
  }

  absl::Status Forward(const Batch& batch) {
    RETURN_IF_ERROR(batch_.Load(batch));
    RETURN_IF_ERROR(
        device_.Order(Device::Stream::kCopyIn, Device::Stream::kCompute));
    for (size_t i = 0; i < layers_.size(); ++i) {
      RETURN_IF_ERROR(layers_[i]->Forward(device_, variables_.values(),
                                          Input(i), batch_.output(i)));
    }
    return absl::OkStatus();
  }

  absl::Status Loss(float* gradient) {
    CrossEntropyOutputs out = batch_.losses();
    out.gradient = gradient;
    RETURN_IF_ERROR(SoftmaxCrossEntropy(
        device_, batch_.output(layers_.size() - 1), batch_.labels(), out));
    return batch_.FetchLosses();
  }

  // On the CPU a layer's gradients are delivered before the next layer down is
  // computed. A CUDA device gets all of its work first, so that it computes on
  // while gradients are delivered in the order in which they arrive.
  absl::Status Backward(const GradientSinks& sinks) {
    const bool enqueues = !device_.shares_host_memory();
    for (size_t i = layers_.size(); i-- > first_trained_;) {
      const MutableMatrixView dy = batch_.output_gradient(i);
      RETURN_IF_ERROR(layers_[i]->VariableGradients(
          device_, Input(i), batch_.output(i), dy, variables_.gradients()));
      for (size_t variable : layers_[i]->variables()) {
        RETURN_IF_ERROR(variables_.FetchGradient(variable));
      }
      if (!enqueues) {
        RETURN_IF_ERROR(Deliver(i, sinks));
      }
      if (i == first_trained_) break;
      RETURN_IF_ERROR(layers_[i]->InputGradient(device_, variables_.values(),
                                                batch_.output(i), dy,
                                                batch_.output_gradient(i - 1)));
    }
    for (size_t i = layers_.size(); enqueues && i-- > first_trained_;) {
      RETURN_IF_ERROR(Deliver(i, sinks));
    }
    return absl::OkStatus();
  }

  absl::Status Deliver(size_t layer, const GradientSinks& sinks) {
    for (size_t variable : layers_[layer]->variables()) {
      ASSIGN_OR_RETURN(absl::Span<const float> gradient,
                       variables_.AwaitGradient(variable));
      sinks.variable(variable, gradient);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Result(const Batch& batch) {
    ASSIGN_OR_RETURN(BatchMemory::Sums sums, batch_.AwaitLosses());
    return BatchResult{batch.size, sums.loss};
  }

  const ResolvedModel model_;
  Device& device_;
  const std::vector<std::unique_ptr<const Layer>> layers_;
  const size_t first_trained_;
  const std::vector<TableUse> tables_;
  VariableMemory variables_;
  BatchMemory batch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const job::Model& spec,
                                                     Device& device) {
  ASSIGN_OR_RETURN(ResolvedModel model, ResolveModel(spec));
  ASSIGN_OR_RETURN(VariableMemory variables,
                   VariableMemory::Create(model.variables, device));
  return std::make_unique<SequentialModel>(std::move(model), device,
                                           std::move(variables));
}

}  // namespace parasol
