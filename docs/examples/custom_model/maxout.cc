// A layer of one's own: maxout (Goodfellow et al. 2013),
//
//   z = x · kernel + bias        [units * pieces]
//   y[j] = max over p of z[j * pieces + p]        [units]
//
// with kernel [inputs, units * pieces] and bias [units * pieces]. Linked with
// //worker:main this file is a worker, with //evaluator:main an evaluator, that
// knows the layer "maxout".

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/layer/custom_layer.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

struct MaxoutShape {
  int64_t inputs = 0;
  int64_t units = 0;
  int64_t pieces = 0;

  int64_t lines() const { return units * pieces; }
};

// The memory of a batch. Made once, used in every step.
class MaxoutPass : public LayerPass {
 public:
  MaxoutPass(Device& device, const MaxoutShape& shape, int64_t examples)
      : device_(device),
        shape_(shape),
        examples_(examples),
        lines_(examples * shape.lines()),
        winners_(examples * shape.units) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* const kernel = pass.variables[0];
    const float* const bias = pass.variables[1];
    RETURN_IF_ERROR(Affine(device_, {pass.x[0], examples_, shape_.inputs},
                           {kernel, shape_.inputs, shape_.lines()}, bias,
                           Epilogue::kNone,
                           {lines_.data(), examples_, shape_.lines()}));
    for (size_t i = 0; i < winners_.size(); ++i) {
      const float* const first = &lines_[i * shape_.pieces];
      winners_[i] =
          std::max_element(first, first + shape_.pieces) - lines_.data();
      pass.y[i] = lines_[winners_[i]];
    }
    return absl::OkStatus();
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    // From here on `lines_` are gradients: dy goes to the piece that was the
    // largest, 0 to all others.
    std::fill(lines_.begin(), lines_.end(), 0.0f);
    for (size_t i = 0; i < winners_.size(); ++i) {
      lines_[winners_[i]] = pass.dy[i];
    }
    float* const kernel_gradient = pass.gradients[0];
    float* const bias_gradient = pass.gradients[1];
    return AffineVariableGradients(
        device_, {pass.x[0], examples_, shape_.inputs},
        {lines_.data(), examples_, shape_.lines()},
        {kernel_gradient, shape_.inputs, shape_.lines()}, bias_gradient);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    // Nobody wants it where nothing before this layer is trained.
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return AffineInputGradient(
        device_, {lines_.data(), examples_, shape_.lines()},
        {pass.variables[0], shape_.inputs, shape_.lines()},
        {pass.dx[0], examples_, shape_.inputs});
  }

 private:
  Device& device_;
  const MaxoutShape shape_;
  const int64_t examples_;
  std::vector<float> lines_;      // [examples, units * pieces]
  std::vector<int64_t> winners_;  // [examples, units]: places in `lines_`
};

class Maxout : public Layer {
 public:
  explicit Maxout(const MaxoutShape& shape) : shape_(shape) {
    output_shape_ = {shape.units};
    variables_ = {{.name = "kernel", .shape = {shape.inputs, shape.lines()}},
                  {.name = "bias", .shape = {shape.lines()}}};
  }

  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    if (!device.shares_host_memory()) {
      return absl::UnimplementedError(
          "maxout computes on the CPU only: --device=cpu");
    }
    return std::make_unique<MaxoutPass>(device, shape_, examples);
  }

 private:
  const MaxoutShape shape_;
};

absl::StatusOr<std::unique_ptr<const Layer>> MakeMaxout(
    const job::CustomLayer& spec, absl::Span<const LayerInput> inputs) {
  if (inputs.size() != 1 || inputs[0].kind != LayerInput::Kind::kDense ||
      inputs[0].shape.size() != 1) {
    return absl::InvalidArgumentError(
        "maxout has one flat input: put flatten {} before");
  }
  int64_t pieces = 0;
  const absl::string_view text = ParameterOf(spec, "pieces", "2");
  if (!absl::SimpleAtoi(text, &pieces) || pieces < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "maxout's parameter pieces is \"", text, "\", not 1 or more"));
  }
  return std::make_unique<Maxout>(
      MaxoutShape{.inputs = inputs[0].shape[0],
                  .units = ElementsOf(spec.output_shape()),
                  .pieces = pieces});
}

const CustomLayerRegistration kRegistration("maxout", MakeMaxout);

}  // namespace
}  // namespace parasol
