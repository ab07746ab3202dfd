#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_SEQUENCES_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_SEQUENCES_H_

#include "absl/status/statusor.h"
#include "tool/exchange/onnx/onnx_graph.h"
#include "tool/exchange/onnx/onnx_layers.h"

namespace parasol {

// The nodes of a layer of each kind, as AddOnnxLayer() adds them.
//   Unimplemented  a recurrent layer with a mask: ONNX knows lengths alone.
absl::StatusOr<OnnxValue> AddOnnxLstm(const OnnxLayer& layer, OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxGru(const OnnxLayer& layer, OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxMultiHeadAttention(const OnnxLayer& layer,
                                                    OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxPositionalEmbedding(const OnnxLayer& layer,
                                                     OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxGlobalAveragePool1D(const OnnxLayer& layer,
                                                     OnnxGraph& graph);
absl::StatusOr<OnnxValue> AddOnnxGlobalMaxPool1D(const OnnxLayer& layer,
                                                 OnnxGraph& graph);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_SEQUENCES_H_
