#include "tool/exchange/onnx/onnx_nodes.h"

#include "base/status_macros.h"
#include "ml/layer/image_window.h"

namespace parasol {
namespace {

using Attribute = OnnxGraph::Attribute;
using Values = std::vector<OnnxValue>;
using Axes = std::vector<int64_t>;

}  // namespace

OnnxGraph::Attribute Ints(absl::string_view name, const Axes& values) {
  return {name, absl::MakeConstSpan(values)};
}

OnnxValue AddIf(bool has, const OnnxValue& x, absl::string_view op,
                const OnnxValue& y, OnnxGraph& graph) {
  return has ? graph.Add(op, Values{x, y}) : x;
}

OnnxValue AddTranspose(const OnnxValue& x, const Axes& order,
                       OnnxGraph& graph) {
  return graph.Add("Transpose", Values{x}, {{Ints("perm", order)}});
}

OnnxValue AddChannelsFirst(const OnnxValue& x, OnnxGraph& graph) {
  return AddTranspose(x, {0, 3, 1, 2}, graph);
}
OnnxValue AddChannelsLast(const OnnxValue& x, OnnxGraph& graph) {
  return AddTranspose(x, {0, 2, 3, 1}, graph);
}

OnnxValue AddReshape(const OnnxValue& x, absl::Span<const int64_t> shape,
                     OnnxGraph& graph) {
  // 0 keeps the number of examples.
  Axes whole = {0};
  whole.insert(whole.end(), shape.begin(), shape.end());
  return graph.Add("Reshape", Values{x, graph.Numbers(whole)});
}

OnnxValue AddSum(const OnnxValue& x, int64_t axis, bool keeps,
                 OnnxGraph& graph) {
  return graph.Add("ReduceSum", Values{x, graph.Numbers({axis})},
                   {{Attribute("keepdims", int64_t{keeps})}});
}

OnnxValue AddMean(const OnnxValue& x, const Axes& axes, bool keeps,
                  OnnxGraph& graph) {
  return graph.Add(
      "ReduceMean", Values{x},
      {{Ints("axes", axes), Attribute("keepdims", int64_t{keeps})}});
}

absl::StatusOr<std::vector<OnnxGraph::Attribute>> WindowAttributes(
    const Shape& image, absl::Span<const int64_t> size,
    absl::Span<const int64_t> stride, job::Padding padding) {
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitImageWindow(image, size, stride, padding));
  const auto& [height, width, channels] = window;
  return std::vector<Attribute>{
      Ints("kernel_shape", {height.window, width.window}),
      Ints("strides", {height.stride, width.stride}),
      Ints("pads",
           {height.before, width.before, height.after(), width.after()})};
}

OnnxValue AddVariableReshape(const OnnxValue& variable, const Shape& shape,
                             OnnxGraph& graph) {
  return graph.Add("Reshape", Values{variable, graph.Numbers(shape)});
}

OnnxValue AddSeen(const OnnxValue& mask, const Shape& shape, OnnxGraph& graph) {
  constexpr int64_t kFloat = onnx::TensorProto::FLOAT;
  const OnnxValue seen = graph.Add("Greater", Values{mask, graph.Number(.5f)});
  return AddReshape(
      graph.Add("Cast", Values{seen}, {{Attribute("to", kFloat)}}), shape,
      graph);
}

}  // namespace parasol
