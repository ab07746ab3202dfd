#include "ml/layer/sequence/recurrent_direction.h"

#include <utility>

#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/zero.h"

namespace parasol {

absl::StatusOr<RecurrentDirection> RecurrentDirection::Create(
    Device& device, const RecurrentShape& shape, bool backwards) {
  RecurrentDirection direction(device, shape, backwards);
  const int64_t rows = shape.examples * shape.steps;
  const int64_t state = shape.examples * shape.units;
  ASSIGN_OR_RETURN(direction.inputs_,
                   device.NewArray<float>(rows * shape.gates()));
  ASSIGN_OR_RETURN(direction.recurrent_,
                   device.NewArray<float>(rows * shape.gates()));
  ASSIGN_OR_RETURN(direction.gates_,
                   device.NewArray<float>(rows * 4 * shape.units));
  ASSIGN_OR_RETURN(direction.h_,
                   device.NewArray<float>((shape.steps + 1) * state));
  ASSIGN_OR_RETURN(direction.through_product_, device.NewArray<float>(state));
  ASSIGN_OR_RETURN(direction.around_product_, device.NewArray<float>(state));
  if (shape.cell == RecurrentCell::kGru) return direction;
  ASSIGN_OR_RETURN(direction.c_,
                   device.NewArray<float>((shape.steps + 1) * state));
  ASSIGN_OR_RETURN(direction.dc_, device.NewArray<float>(state));
  return direction;
}

CellStep RecurrentDirection::StepOf(const Arrays& arrays, int64_t step) const {
  const int64_t place = backwards_ ? shape_.steps - 1 - step : step;
  return {.examples = shape_.examples,
          .units = shape_.units,
          .inputs = inputs_.data() + place * shape_.gates(),
          .input_stride = shape_.steps * shape_.gates(),
          .recurrent = recurrent_.data(),
          .mask = arrays.mask == nullptr ? nullptr : arrays.mask + place,
          .mask_stride = shape_.steps,
          .before = State(h_, step)};
}

// A GRU's bias has two rows.
const float* RecurrentDirection::Bias(const Arrays& arrays, int64_t row) const {
  const int64_t rows = shape_.cell == RecurrentCell::kGru ? 2 : 1;
  if (!shape_.has_bias || row >= rows) return nullptr;
  return arrays.variables[2] + row * shape_.gates();
}

absl::Status RecurrentDirection::Forward(const Arrays& arrays) {
  const auto& [cell, examples, steps, channels, units, has_bias] = shape_;
  const int64_t gates = shape_.gates();
  RETURN_IF_ERROR(Affine(*device_, {arrays.x, examples * steps, channels},
                         {arrays.variables[0], channels, gates},
                         Bias(arrays, 0), Epilogue::kNone,
                         {inputs_.data(), examples * steps, gates}));
  for (int64_t step = 0; step < steps; ++step) {
    RETURN_IF_ERROR(Affine(*device_, {State(h_, step), examples, units},
                           {arrays.variables[1], units, gates}, Bias(arrays, 1),
                           Epilogue::kNone,
                           {recurrent_.data(), examples, gates}));
    const CellStep of_step = StepOf(arrays, step);
    float* const kept = gates_.data() + step * examples * 4 * units;
    if (cell == RecurrentCell::kLstm) {
      RETURN_IF_ERROR(LstmStep(*device_, of_step, State(c_, step), kept,
                               State(c_, step + 1), State(h_, step + 1)));
    } else {
      RETURN_IF_ERROR(GruStep(*device_, of_step, kept, State(h_, step + 1)));
    }
  }
  return absl::OkStatus();
}

absl::Status RecurrentDirection::BackwardStep(const Arrays& arrays,
                                              int64_t step, StepGradient dy) {
  const CellStep of_step = StepOf(arrays, step);
  const int64_t rows = shape_.examples;
  float* const recurrent = recurrent_.data() + step * rows * shape_.gates();
  const bool is_last = step == shape_.steps - 1;
  const CellGradient gradient = {
      .dy = dy.data,
      .dy_stride = dy.stride,
      .through_product = is_last ? nullptr : through_product_.data(),
      .around_product = around_product_.data(),
      .inputs = inputs_.data() + (of_step.inputs - inputs_.data()),
      .recurrent = recurrent};
  const float* const kept = gates_.data() + step * rows * 4 * shape_.units;
  if (shape_.cell == RecurrentCell::kLstm) {
    RETURN_IF_ERROR(LstmStepGradient(*device_, of_step, State(c_, step), kept,
                                     State(c_, step + 1), dc_.data(),
                                     gradient));
  } else {
    RETURN_IF_ERROR(GruStepGradient(*device_, of_step, kept, gradient));
  }
  if (step == 0) return absl::OkStatus();
  return AffineInputGradient(
      *device_, {recurrent, rows, shape_.gates()},
      {arrays.variables[1], shape_.units, shape_.gates()},
      {through_product_.data(), rows, shape_.units});
}

absl::Status RecurrentDirection::VariableGradients(
    const Arrays& arrays, absl::FunctionRef<StepGradient(int64_t step)> dy,
    absl::Span<float* const> gradients) {
  const int64_t state = shape_.examples * shape_.units;
  RETURN_IF_ERROR(Zero(*device_, around_product_.data(), state));
  if (shape_.cell == RecurrentCell::kLstm) {
    RETURN_IF_ERROR(Zero(*device_, dc_.data(), state));
  }
  for (int64_t step = shape_.steps - 1; step >= 0; --step) {
    RETURN_IF_ERROR(BackwardStep(arrays, step, dy(step)));
  }
  const int64_t rows = shape_.examples * shape_.steps;
  const int64_t gates = shape_.gates();
  float* const bias = shape_.has_bias ? gradients[2] : nullptr;
  const bool has_recurrent_bias =
      shape_.has_bias && shape_.cell == RecurrentCell::kGru;
  RETURN_IF_ERROR(
      AffineVariableGradients(*device_, {arrays.x, rows, shape_.channels},
                              {inputs_.data(), rows, gates},
                              {gradients[0], shape_.channels, gates}, bias));
  return AffineVariableGradients(*device_, {h_.data(), rows, shape_.units},
                                 {recurrent_.data(), rows, gates},
                                 {gradients[1], shape_.units, gates},
                                 has_recurrent_bias ? bias + gates : nullptr);
}

absl::Status RecurrentDirection::InputGradient(const Arrays& arrays,
                                               float* dx) {
  const int64_t rows = shape_.examples * shape_.steps;
  return AffineInputGradient(
      *device_, {inputs_.data(), rows, shape_.gates()},
      {arrays.variables[0], shape_.channels, shape_.gates()},
      {dx, rows, shape_.channels});
}

}  // namespace parasol
