#include "ml/layer/concatenate.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/kernel/copy_columns.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

// The output as a matrix whose columns are the axis and what follows it: of
// each input, how many are its own.
struct Columns {
  int64_t rows_per_example = 0;
  std::vector<int64_t> of_input;
  int64_t total = 0;
};

class ConcatenatePass final : public LayerPass {
 public:
  ConcatenatePass(Device& device, const Columns& columns, int64_t examples)
      : device_(device),
        columns_(columns),
        rows_(examples * columns.rows_per_example) {}

  absl::Status RunForward(const Forward& pass) override {
    float* y = pass.y;
    for (size_t i = 0; i < pass.x.size(); ++i) {
      const int64_t count = columns_.of_input[i];
      RETURN_IF_ERROR(CopyColumns(device_, rows_, count, pass.x[i], count, y,
                                  columns_.total));
      y += count;
    }
    return absl::OkStatus();
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    const float* dy = pass.dy;
    for (size_t i = 0; i < pass.dx.size(); ++i) {
      const int64_t count = columns_.of_input[i];
      if (pass.dx[i] != nullptr) {
        RETURN_IF_ERROR(CopyColumns(device_, rows_, count, dy, columns_.total,
                                    pass.dx[i], count));
      }
      dy += count;
    }
    return absl::OkStatus();
  }

 private:
  Device& device_;
  const Columns& columns_;
  const int64_t rows_;
};

class ConcatenateLayer final : public Layer {
 public:
  ConcatenateLayer(Shape shape, Columns columns)
      : columns_(std::move(columns)) {
    output_shape_ = std::move(shape);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<ConcatenatePass>(device, columns_, examples);
  }

 private:
  const Columns columns_;
};

absl::Status CheckShapes(absl::Span<const LayerInput> inputs, size_t axis) {
  for (const LayerInput& input : inputs) {
    Shape shape = input.shape;
    if (shape.size() == inputs[0].shape.size()) {
      shape[axis] = inputs[0].shape[axis];
      if (shape == inputs[0].shape) continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "inputs of shapes ", ShapeText(inputs[0].shape), " and ",
        ShapeText(input.shape), " cannot be concatenated along axis ", axis));
  }
  return absl::OkStatus();
}

// Largest axis of an example.
constexpr int64_t kMaxAxis = 15;

void FillDefaults(job::Concatenate& spec) {
  PARASOL_SET_DEFAULT(spec, axis, -1);
}

absl::Status CheckRanges(const std::string& path,
                         const job::Concatenate& spec) {
  return RequireInRange(absl::StrCat(path, ".axis"), spec.axis(), -1, kMaxAxis);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeConcatenate(
    const job::Concatenate& spec, absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  Shape shape = inputs[0].shape;
  const auto axes = static_cast<int64_t>(shape.size());
  job::Concatenate filled = spec;
  FillDefaults(filled);
  const int64_t axis = filled.axis() == -1 ? axes - 1 : filled.axis();
  if (axis < 0 || axis >= axes) {
    return absl::InvalidArgumentError(
        absl::StrCat("concatenate.axis is ", axis, ", and the first input has ",
                     axes, axes == 1 ? " axis" : " axes"));
  }
  RETURN_IF_ERROR(CheckShapes(inputs, axis));
  const absl::Span<const int64_t> all(shape);
  Columns columns = {.rows_per_example = ElementsOf(all.first(axis)),
                     .of_input = {}};
  const int64_t column_size = ElementsOf(all.subspan(axis + 1));
  shape[axis] = 0;
  for (const LayerInput& input : inputs) {
    columns.of_input.push_back(input.shape[axis] * column_size);
    columns.total += columns.of_input.back();
    shape[axis] += input.shape[axis];
  }
  return std::make_unique<ConcatenateLayer>(std::move(shape),
                                            std::move(columns));
}

constinit const LayerKind kConcatenateKind = {
    .field = job::Layer::kConcatenate,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_concatenate()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.concatenate());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) { return MakeConcatenate(layer.concatenate(), inputs); },
};

}  // namespace parasol
