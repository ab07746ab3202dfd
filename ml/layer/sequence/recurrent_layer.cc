#include "ml/layer/sequence/recurrent_layer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ml/kernel/add.h"
#include "ml/kernel/copy_columns.h"
#include "ml/kernel/sequence/merge_halves.h"
#include "ml/kernel/zero.h"
#include "ml/layer/sequence/step_inputs.h"

namespace parasol {
namespace {

using Merge = job::Bidirectional;

HalvesMerge HalvesOf(Merge::Merge merge) {
  switch (merge) {
    case Merge::MUL:
      return HalvesMerge::kProduct;
    case Merge::AVE:
      return HalvesMerge::kAverage;
    default:
      return HalvesMerge::kSum;
  }
}

class RecurrentPass final : public LayerPass {
 public:
  struct Form {
    RecurrentShape shape;
    bool return_sequences = false;
    Merge::Merge merge = Merge::ONE_DIRECTION;

    bool has_two() const { return merge != Merge::ONE_DIRECTION; }
    bool is_merged() const { return has_two() && merge != Merge::CONCAT; }
    // Steps and numbers of a step of what the directions put side by side.
    int64_t steps() const { return return_sequences ? shape.steps : 1; }
    int64_t width() const { return shape.units * (has_two() ? 2 : 1); }
    int64_t side_by_side() const { return shape.examples * steps() * width(); }
  };

  // `both`, `gradient` and `second_dx`: memory for both directions' outputs,
  // their gradients and a second dx; empty if they are not needed.
  RecurrentPass(Device& device, const Form& form,
                std::vector<RecurrentDirection> directions, Array<float> both,
                Array<float> gradient, Array<float> second_dx)
      : device_(device),
        form_(form),
        directions_(std::move(directions)),
        both_(std::move(both)),
        gradient_(std::move(gradient)),
        second_dx_(std::move(second_dx)) {}

  absl::Status RunForward(const Forward& pass) override {
    float* const y = form_.is_merged() ? both_.data() : pass.y.As<float>();
    for (size_t d = 0; d < directions_.size(); ++d) {
      RETURN_IF_ERROR(
          directions_[d].Forward(ArraysOf(pass.x, pass.variables, d)));
      for (int64_t step = FirstStep(); step < form_.shape.steps; ++step) {
        RETURN_IF_ERROR(
            CopyColumns(device_, form_.shape.examples, form_.shape.units,
                        directions_[d].Output(step), form_.shape.units,
                        y + PlaceOf(d, step), form_.steps() * form_.width()));
      }
    }
    if (!form_.is_merged()) return absl::OkStatus();
    return MergeHalves(device_, HalvesOf(form_.merge),
                       form_.shape.examples * form_.steps(), form_.shape.units,
                       both_.data(), pass.y);
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    const float* dy = pass.dy;
    if (form_.is_merged()) {
      RETURN_IF_ERROR(MergeHalvesGradient(
          device_, HalvesOf(form_.merge), form_.shape.examples * form_.steps(),
          form_.shape.units, both_.data(), dy, gradient_.data()));
      dy = gradient_.data();
    }
    for (size_t d = 0; d < directions_.size(); ++d) {
      const auto by_step = [&](int64_t step) {
        using Gradient = RecurrentDirection::StepGradient;
        if (step < FirstStep()) return Gradient();
        return Gradient{dy + PlaceOf(d, step), form_.steps() * form_.width()};
      };
      RETURN_IF_ERROR(directions_[d].VariableGradients(
          ArraysOf(pass.x, pass.variables, d), by_step,
          OfDirection(pass.gradients, d)));
    }
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    // Nothing changes where a mask changes a little.
    if (pass.dx.size() > 1 && pass.dx[1] != nullptr) {
      RETURN_IF_ERROR(
          Zero(device_, pass.dx[1], form_.shape.examples * form_.shape.steps));
    }
    float* const dx = pass.dx[0];
    if (dx == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(
        directions_[0].InputGradient(ArraysOf(pass.x, pass.variables, 0), dx));
    if (directions_.size() == 1) return absl::OkStatus();
    RETURN_IF_ERROR(directions_[1].InputGradient(
        ArraysOf(pass.x, pass.variables, 1), second_dx_.data()));
    return Add(device_, dx, second_dx_.data(),
               static_cast<int64_t>(second_dx_.size()), AddEpilogue::kNone, dx);
  }

 private:
  // The first step whose output is the layer's.
  int64_t FirstStep() const {
    return form_.return_sequences ? 0 : form_.shape.steps - 1;
  }
  // Where a direction's step is in the first example's output. The second
  // direction's steps are turned round, as Keras does.
  int64_t PlaceOf(size_t direction, int64_t step) const {
    const int64_t last = form_.shape.steps - 1;
    int64_t place = direction == 0 ? step : last - step;
    if (!form_.return_sequences) place = 0;
    return place * form_.width() +
           static_cast<int64_t>(direction) * form_.shape.units;
  }
  template <typename T>
  absl::Span<T> OfDirection(absl::Span<T> variables, size_t direction) const {
    const size_t each = variables.size() / directions_.size();
    return variables.subspan(direction * each, each);
  }
  RecurrentDirection::Arrays ArraysOf(absl::Span<const ConstElements> x,
                                      absl::Span<const float* const> variables,
                                      size_t direction) const {
    return {.x = x[0],
            .mask = x.size() > 1 ? x[1].As<float>() : nullptr,
            .variables = OfDirection(variables, direction)};
  }

  Device& device_;
  const Form form_;
  std::vector<RecurrentDirection> directions_;
  const Array<float> both_;
  const Array<float> gradient_;
  const Array<float> second_dx_;
};

class RecurrentLayer final : public Layer {
 public:
  RecurrentLayer(const RecurrentForm& form, int64_t steps, int64_t channels)
      : go_backwards_(form.go_backwards),
        form_{.shape = {.cell = form.cell,
                        .examples = 1,
                        .steps = steps,
                        .channels = channels,
                        .units = form.units,
                        .has_bias = form.has_bias},
              .return_sequences = form.return_sequences,
              .merge = form.merge} {
    const int64_t width = form_.is_merged() ? form.units : form_.width();
    if (form.return_sequences) output_shape_.push_back(steps);
    output_shape_.push_back(width);
    if (!form_.has_two()) {
      AddVariables("", form);
      return;
    }
    AddVariables("forward/", form);
    AddVariables("backward/", form);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    RecurrentPass::Form form = form_;
    form.shape.examples = examples;
    std::vector<RecurrentDirection> directions;
    for (int d = 0; d < (form.has_two() ? 2 : 1); ++d) {
      ASSIGN_OR_RETURN(
          RecurrentDirection direction,
          RecurrentDirection::Create(device, form.shape,
                                     /*backwards=*/d == 1 || go_backwards_));
      directions.push_back(std::move(direction));
    }
    const int64_t merged = form.is_merged() ? form.side_by_side() : 0;
    const int64_t inputs = examples * form.shape.steps * form.shape.channels;
    ASSIGN_OR_RETURN(Array<float> both, device.NewArray<float>(merged));
    ASSIGN_OR_RETURN(Array<float> gradient, device.NewArray<float>(merged));
    ASSIGN_OR_RETURN(Array<float> second_dx,
                     device.NewArray<float>(form.has_two() ? inputs : 0));
    return std::make_unique<RecurrentPass>(device, form, std::move(directions),
                                           std::move(both), std::move(gradient),
                                           std::move(second_dx));
  }

 private:
  void AddVariables(const std::string& direction, const RecurrentForm& form) {
    const int64_t gates = form_.shape.gates();
    AddVariable(direction + "kernel", {form_.shape.channels, gates},
                form.kernel);
    AddVariable(direction + "recurrent_kernel", {form.units, gates},
                form.recurrent_kernel);
    if (!form.has_bias) return;
    const bool is_gru = form.cell == RecurrentCell::kGru;
    AddVariable(direction + "bias", is_gru ? Shape{2, gates} : Shape{gates},
                form.bias);
  }
  void AddVariable(std::string name, Shape shape,
                   const RecurrentVariable& variable) {
    variables_.push_back({.name = std::move(name),
                          .shape = std::move(shape),
                          .initializer = variable.initializer});
    variable_l2_.push_back(variable.l2);
  }

  const bool go_backwards_;
  const RecurrentPass::Form form_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeRecurrent(
    const RecurrentForm& form, absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const StepInputs steps, StepInputsOf(inputs));
  // Four gates, and room for any of the products' matrices.
  const int64_t rows = std::max(steps.channels, form.units);
  if (form.units < 1 || form.units > kMaxInt / 4 / rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        form.units, " units with ", steps.channels,
        " channels: kernels must have 1 to ", kMaxInt, " elements"));
  }
  return std::make_unique<RecurrentLayer>(form, steps.steps, steps.channels);
}

}  // namespace parasol
