#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_CONVOLUTIONS_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_CONVOLUTIONS_H_

#include "absl/status/statusor.h"
#include "tool/exchange/onnx/onnx_graph.h"
#include "tool/exchange/onnx/onnx_layers.h"

namespace parasol {

// The nodes of a layer of each kind, as AddOnnxLayer() adds them.
absl::StatusOr<OnnxValue> AddOnnxConv1D(const OnnxLayer& layer,
                                        OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxDepthwiseConv2D(const OnnxLayer& layer,
                                                 OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxSeparableConv2D(const OnnxLayer& layer,
                                                 OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxConv2DTranspose(const OnnxLayer& layer,
                                                 OnnxGraph& graph);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_CONVOLUTIONS_H_
