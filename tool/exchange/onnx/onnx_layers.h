#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_LAYERS_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_LAYERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"
#include "tool/exchange/onnx/onnx_graph.h"

namespace parasol {

// A layer of a model, and the values of an ONNX graph that it is applied to.
struct OnnxLayer {
  // The layer with its defaults filled in.
  const job::Layer& spec;
  // The shape of an example's output.
  const Shape& output_shape;
  // The layer's inputs, and their shapes for one example. An input of ids is
  // what the ids' rows are: [examples, ids, width].
  std::vector<OnnxValue> inputs;
  std::vector<Shape> shapes;
  // The weight of each id, [examples, ids]; for embedding_bag alone.
  OnnxValue weights;
  // The layer's variables, in the order of Layer::variables().
  std::vector<OnnxValue> variables;
};

// Adds the nodes that compute the layer as evaluation does, and returns its
// output.
//   Unimplemented  a custom layer: ONNX has no such operator.
absl::StatusOr<OnnxValue> AddOnnxLayer(const OnnxLayer& layer,
                                       OnnxGraph& graph);

// Adds the nodes of an activation and returns its output: `x` itself for none.
OnnxValue AddOnnxActivation(job::Activation activation, const OnnxValue& x,
                            OnnxGraph& graph);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_LAYERS_H_
