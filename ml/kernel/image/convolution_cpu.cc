#include <memory>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "ml/device/dnnl_operation.h"
#include "ml/kernel/image/convolution.h"
#include "ml/kernel/image/winograd.h"
#include "ml/kernel/normalization/channel_sums.h"
#include "ml/kernel/relu.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace parasol::cpu {
namespace {

using Format = dnnl::memory::format_tag;
using Layout = dnnl::memory::desc;

constexpr auto kFloat = dnnl::memory::data_type::f32;
// oneDNN's Winograd has tiles of 4 × 4 pixels, whose sums round an order of
// magnitude worse.
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// The arguments of a convolution as oneDNN wants them. Images stay NHWC, for
// which it has kernels as fast as for its own layouts; the weights' is its
// choice, and another one for each direction.
struct Arguments {
  explicit Arguments(const ConvolutionShape& s)
      : x({s.examples, s.channels, s.height.input, s.width.input}, kFloat,
          Format::nhwc),
        weights(WeightsShape(s), kFloat, Format::any),
        kernel(WeightsShape(s), kFloat, Format::hwio),
        bias({s.filters}, kFloat, Format::x),
        y({s.examples, s.filters, s.height.output, s.width.output}, kFloat,
          Format::nhwc),
        strides({s.height.stride, s.width.stride}),
        before({s.height.before, s.width.before}),
        after({s.height.after(), s.width.after()}) {}

  static dnnl::memory::dims WeightsShape(const ConvolutionShape& s) {
    return {s.filters, s.channels, s.height.window, s.width.window};
  }

  dnnl::convolution_forward::primitive_desc Forward(const dnnl::engine& engine,
                                                    bool has_bias) const {
    using Desc = dnnl::convolution_forward::desc;
    constexpr auto kKind = dnnl::prop_kind::forward_training;
    return {
        has_bias
            ? Desc(kKind, kDirect, x, weights, bias, y, strides, before, after)
            : Desc(kKind, kDirect, x, weights, y, strides, before, after),
        DnnlOperation::Attributes(), engine};
  }

  dnnl::convolution_backward_weights::primitive_desc BackwardWeights(
      const dnnl::engine& engine) const {
    return {{kDirect, x, weights, y, strides, before, after},
            DnnlOperation::Attributes(),
            engine,
            Forward(engine, /*has_bias=*/false)};
  }

  dnnl::convolution_backward_data::primitive_desc BackwardData(
      const dnnl::engine& engine) const {
    return {{kDirect, x, weights, y, strides, before, after},
            DnnlOperation::Attributes(),
            engine,
            Forward(engine, /*has_bias=*/false)};
  }

  Layout x, weights, kernel, bias, y;
  dnnl::memory::dims strides, before, after;
};

// Index of the weights among a description's arguments.
constexpr size_t kWeights = 1;

enum class WeightsAre { kRead, kWritten };

// One of the three operations, and the weights in the layout that it has chosen
// for them.
struct Direction {
  DnnlOperation convolution;
  DnnlOperation reorder;  // between the kernel and `weights`
  Array<float> weights;
};

absl::StatusOr<DnnlOperation> NewReorder(Device& device, const Layout& from,
                                         const Layout& to) {
  return DnnlOperation::Create(
      device, [&](const dnnl::engine& engine) -> DnnlOperation::Description {
        return {dnnl::reorder::primitive_desc(engine, from, engine, to,
                                              DnnlOperation::Attributes()),
                {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
      });
}

absl::StatusOr<Direction> NewDirection(
    Device& device, const Layout& kernel, WeightsAre weights_are,
    absl::FunctionRef<DnnlOperation::Description(const dnnl::engine&)>
        describe) {
  Direction direction;
  Layout weights;
  ASSIGN_OR_RETURN(
      direction.convolution,
      DnnlOperation::Create(device, [&](const dnnl::engine& engine) {
        DnnlOperation::Description description = describe(engine);
        weights = description.arguments[kWeights].layout;
        return description;
      }));
  const bool read = weights_are == WeightsAre::kRead;
  ASSIGN_OR_RETURN(
      direction.reorder,
      NewReorder(device, read ? kernel : weights, read ? weights : kernel));
  ASSIGN_OR_RETURN(direction.weights,
                   device.NewArray<float>(ElementsOf(weights)));
  return direction;
}

// Sums over windows, computed by oneDNN.
class DirectConvolution : public Convolution {
 public:
  DirectConvolution(Device& device, const ConvolutionShape& shape,
                    const Options& options)
      : device_(device),
        shape_(shape),
        options_(options),
        arguments_(shape),
        sums_(device, WideRows(shape.outputs(), shape.filters), /*sums=*/1) {}

  absl::Status Forward(ConstElements x, const float* kernel, const float* bias,
                       Elements y) override {
    if (!forward_) {
      ASSIGN_OR_RETURN(forward_, NewForward());
    }
    float* const weights = forward_->weights.data();
    RETURN_IF_ERROR(forward_->reorder.Run({kernel, weights}));
    RETURN_IF_ERROR(options_.has_bias
                        ? forward_->convolution.Run({x, weights, y, bias})
                        : forward_->convolution.Run({x, weights, y}));
    // oneDNN's own relu turns NaN into 0.
    if (options_.epilogue == Epilogue::kNone) return absl::OkStatus();
    return parasol::Relu(device_, y, shape_.y_size(), y);
  }

  absl::Status VariableGradients(ConstElements x, ConstElements dy,
                                 float* dkernel, float* dbias) override {
    if (!backward_weights_) {
      ASSIGN_OR_RETURN(backward_weights_, NewBackwardWeights());
    }
    float* const weights = backward_weights_->weights.data();
    RETURN_IF_ERROR(backward_weights_->convolution.Run({x, weights, dy}));
    RETURN_IF_ERROR(backward_weights_->reorder.Run({weights, dkernel}));
    // oneDNN's own sum costs up to half as much as the convolution.
    if (options_.has_bias) sums_.SumRows(dy, dbias);
    return absl::OkStatus();
  }

  absl::Status InputGradient(ConstElements dy, const float* kernel,
                             Elements dx) override {
    if (!backward_data_) {
      ASSIGN_OR_RETURN(backward_data_, NewBackwardData());
    }
    float* const weights = backward_data_->weights.data();
    RETURN_IF_ERROR(backward_data_->reorder.Run({kernel, weights}));
    return backward_data_->convolution.Run({dy, weights, dx});
  }

 private:
  using Description = DnnlOperation::Description;

  absl::StatusOr<Direction> NewForward() {
    return NewDirection(
        device_, arguments_.kernel, WeightsAre::kRead,
        [&](const dnnl::engine& engine) {
          const auto primitive = arguments_.Forward(engine, options_.has_bias);
          Description description = {
              primitive,
              {{DNNL_ARG_SRC, arguments_.x},
               {DNNL_ARG_WEIGHTS, primitive.weights_desc()},
               {DNNL_ARG_DST, arguments_.y}}};
          if (options_.has_bias) {
            description.arguments.push_back({DNNL_ARG_BIAS, arguments_.bias});
          }
          return description;
        });
  }

  absl::StatusOr<Direction> NewBackwardWeights() {
    return NewDirection(
        device_, arguments_.kernel, WeightsAre::kWritten,
        [&](const dnnl::engine& engine) -> Description {
          const auto primitive = arguments_.BackwardWeights(engine);
          return {primitive,
                  {{DNNL_ARG_SRC, arguments_.x},
                   {DNNL_ARG_DIFF_WEIGHTS, primitive.diff_weights_desc()},
                   {DNNL_ARG_DIFF_DST, arguments_.y}}};
        });
  }

  absl::StatusOr<Direction> NewBackwardData() {
    return NewDirection(device_, arguments_.kernel, WeightsAre::kRead,
                        [&](const dnnl::engine& engine) -> Description {
                          const auto primitive =
                              arguments_.BackwardData(engine);
                          return {primitive,
                                  {{DNNL_ARG_DIFF_DST, arguments_.y},
                                   {DNNL_ARG_WEIGHTS, primitive.weights_desc()},
                                   {DNNL_ARG_DIFF_SRC, arguments_.x}}};
                        });
  }

  Device& device_;
  const ConvolutionShape shape_;
  const Options options_;
  const Arguments arguments_;
  ChannelSums sums_;
  std::optional<Direction> forward_;
  std::optional<Direction> backward_weights_;
  std::optional<Direction> backward_data_;
};

class WinogradConvolution : public Convolution {
 public:
  WinogradConvolution(Device& device, const ConvolutionShape& shape,
                      const Options& options)
      : options_(options),
        winograd_(device, shape),
        sums_(device, WideRows(shape.outputs(), shape.filters), /*sums=*/1) {}

  absl::Status Forward(ConstElements x, const float* kernel, const float* bias,
                       Elements y) override {
    return winograd_.Forward(x, kernel, options_.has_bias ? bias : nullptr,
                             options_.epilogue, y);
  }

  absl::Status VariableGradients(ConstElements x, ConstElements dy,
                                 float* dkernel, float* dbias) override {
    if (options_.has_bias) sums_.SumRows(dy, dbias);
    return winograd_.KernelGradient(x, dy, dkernel);
  }

  absl::Status InputGradient(ConstElements dy, const float* kernel,
                             Elements dx) override {
    return winograd_.InputGradient(dy, kernel, dx);
  }

 private:
  const Options options_;
  Winograd winograd_;
  ChannelSums sums_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Convolution>> NewConvolution(
    Device& device, const ConvolutionShape& shape,
    const Convolution::Options& options) {
  if (Winograd::Fits(shape)) {
    return std::make_unique<WinogradConvolution>(device, shape, options);
  }
  return std::make_unique<DirectConvolution>(device, shape, options);
}

}  // namespace parasol::cpu
