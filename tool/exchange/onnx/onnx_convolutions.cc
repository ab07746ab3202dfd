#include "tool/exchange/onnx/onnx_convolutions.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/status_macros.h"
#include "ml/layer/convolution/dilated_window.h"
#include "ml/layer/convolution/step_window.h"
#include "ml/layer/convolution/transposed_window.h"
#include "tool/exchange/onnx/onnx_nodes.h"

namespace parasol {
namespace {

using Attribute = OnnxGraph::Attribute;
using Values = std::vector<OnnxValue>;
using Axes = std::vector<int64_t>;

// Attributes of a convolution over one axis or two, whose windows' elements lie
// `dilations` apart.
std::vector<Attribute> AttributesOf(const std::vector<WindowAxis>& axes,
                                    const Axes& elements,
                                    const Axes& dilations) {
  Axes strides, pads;
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    pads.push_back(axis.before);
  }
  for (const WindowAxis& axis : axes) pads.push_back(axis.after());
  return {Ints("kernel_shape", elements), Ints("strides", strides),
          Ints("pads", pads), Ints("dilations", dilations)};
}

// A depthwise convolution is one of as many groups as there are channels.
template <typename Depthwise>
absl::StatusOr<OnnxValue> AddDepthwise(const Depthwise& spec,
                                       const OnnxLayer& layer,
                                       OnnxGraph& graph) {
  ASSIGN_OR_RETURN(const DepthwiseShape s, FitDepthwise(layer.shapes[0], spec));
  std::vector<Attribute> attributes =
      AttributesOf({s.height, s.width}, {s.rows(), s.columns()},
                   {s.height_dilation, s.width_dilation});
  attributes.push_back(Attribute("group", s.channels));
  const OnnxValue kernel = AddVariableReshape(
      layer.variables[0], {s.rows(), s.columns(), 1, s.filters()}, graph);
  const Values inputs = {AddChannelsFirst(layer.inputs[0], graph),
                         AddTranspose(kernel, {3, 2, 0, 1}, graph)};
  return AddChannelsLast(graph.Add("Conv", inputs, attributes), graph);
}

}  // namespace

absl::StatusOr<OnnxValue> AddOnnxConv1D(const OnnxLayer& layer,
                                        OnnxGraph& graph) {
  const job::Conv1D& spec = layer.spec.conv1d();
  ASSIGN_OR_RETURN(const WindowAxis steps, FitSteps(layer.shapes[0], spec));
  Values inputs = {AddTranspose(layer.inputs[0], {0, 2, 1}, graph),
                   AddTranspose(layer.variables[0], {2, 1, 0}, graph)};
  if (spec.use_bias()) inputs.push_back(layer.variables[1]);
  const OnnxValue y = graph.Add(
      "Conv", inputs,
      AttributesOf({steps}, {spec.kernel_size()}, {spec.dilation_rate()}));
  return AddOnnxActivation(spec.activation(), AddTranspose(y, {0, 2, 1}, graph),
                           graph);
}

absl::StatusOr<OnnxValue> AddOnnxDepthwiseConv2D(const OnnxLayer& layer,
                                                 OnnxGraph& graph) {
  const job::DepthwiseConv2D& spec = layer.spec.depthwise_conv2d();
  ASSIGN_OR_RETURN(OnnxValue y, AddDepthwise(spec, layer, graph));
  y = AddIf(spec.use_bias(), y, "Add", layer.variables.back(), graph);
  return AddOnnxActivation(spec.activation(), y, graph);
}

absl::StatusOr<OnnxValue> AddOnnxSeparableConv2D(const OnnxLayer& layer,
                                                 OnnxGraph& graph) {
  const job::SeparableConv2D& spec = layer.spec.separable_conv2d();
  ASSIGN_OR_RETURN(OnnxValue y, AddDepthwise(spec, layer, graph));
  const OnnxValue pointwise = AddVariableReshape(
      layer.variables[1],
      {layer.shapes[0][2] * spec.depth_multiplier(), spec.filters()}, graph);
  y = graph.Add("MatMul", Values{y, pointwise});
  y = AddIf(spec.use_bias(), y, "Add", layer.variables.back(), graph);
  return AddOnnxActivation(spec.activation(), y, graph);
}

absl::StatusOr<OnnxValue> AddOnnxConv2DTranspose(const OnnxLayer& layer,
                                                 OnnxGraph& graph) {
  const job::Conv2DTranspose& spec = layer.spec.conv2d_transpose();
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitTransposedWindow(layer.shapes[0], spec.kernel_size(),
                                       spec.stride(), spec.padding()));
  // An output is (input - 1) · stride + window pixels long, less the pads; what
  // is missing is output_padding.
  Axes before, after, missing;
  for (const WindowAxis& axis : {window.height, window.width}) {
    const int64_t beyond = (axis.output - 1) * axis.stride + axis.window -
                           axis.before - axis.input;
    before.push_back(axis.before);
    after.push_back(std::max<int64_t>(beyond, 0));
    missing.push_back(std::max<int64_t>(-beyond, 0));
  }
  Values inputs = {AddChannelsFirst(layer.inputs[0], graph),
                   AddTranspose(layer.variables[0], {3, 2, 0, 1}, graph)};
  if (spec.use_bias()) inputs.push_back(layer.variables[1]);
  before.insert(before.end(), after.begin(), after.end());
  const std::vector<Attribute> attributes = {
      Ints("kernel_shape", {window.height.window, window.width.window}),
      Ints("strides", {window.height.stride, window.width.stride}),
      Ints("pads", before), Ints("output_padding", missing)};
  const OnnxValue y =
      AddChannelsLast(graph.Add("ConvTranspose", inputs, attributes), graph);
  return AddOnnxActivation(spec.activation(), y, graph);
}

}  // namespace parasol
