#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_NODES_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"
#include "tool/exchange/onnx/onnx_graph.h"

namespace parasol {

// Nodes of which layers are made. Each function adds some to the graph and
// returns what they compute.

// A name for a list of numbers of an attribute.
OnnxGraph::Attribute Ints(absl::string_view name,
                          const std::vector<int64_t>& values);

// Returns `x` itself unless `has`.
OnnxValue AddIf(bool has, const OnnxValue& x, absl::string_view op,
                const OnnxValue& y, OnnxGraph& graph);
OnnxValue AddTranspose(const OnnxValue& x, const std::vector<int64_t>& order,
                       OnnxGraph& graph);

// Images [examples, height, width, channels] as ONNX has them, with the
// channels before the pixels, and back.
OnnxValue AddChannelsFirst(const OnnxValue& x, OnnxGraph& graph);
OnnxValue AddChannelsLast(const OnnxValue& x, OnnxGraph& graph);

// Gives each example of `x`, or a variable, another shape.
OnnxValue AddReshape(const OnnxValue& x, absl::Span<const int64_t> shape,
                     OnnxGraph& graph);
OnnxValue AddVariableReshape(const OnnxValue& variable, const Shape& shape,
                             OnnxGraph& graph);

OnnxValue AddSum(const OnnxValue& x, int64_t axis, bool keeps,
                 OnnxGraph& graph);
OnnxValue AddMean(const OnnxValue& x, const std::vector<int64_t>& axes,
                  bool keeps, OnnxGraph& graph);

// Adds 1 where the mask is above .5, and 0 elsewhere, in a shape of each
// example.
OnnxValue AddSeen(const OnnxValue& mask, const Shape& shape, OnnxGraph& graph);

// Returns the attributes of a convolution's or a pooling's window over images
// of this shape, which fits: the layer was made.
absl::StatusOr<std::vector<OnnxGraph::Attribute>> WindowAttributes(
    const Shape& image, absl::Span<const int64_t> size,
    absl::Span<const int64_t> stride, job::Padding padding);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_NODES_H_
