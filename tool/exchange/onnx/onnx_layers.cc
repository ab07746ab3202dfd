#include "tool/exchange/onnx/onnx_layers.h"

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "tool/exchange/onnx/onnx_convolutions.h"
#include "tool/exchange/onnx/onnx_nodes.h"
#include "tool/exchange/onnx/onnx_sequences.h"

namespace parasol {
namespace {

using Attribute = OnnxGraph::Attribute;
using Values = std::vector<OnnxValue>;
using Axes = std::vector<int64_t>;

// The slope of a leaky ReLU below 0 (docs/job/model.md).
constexpr float kLeakyReluSlope = .2f;

// x · ½ · (1 + erf(x / √2)).
OnnxValue AddGelu(const OnnxValue& x, OnnxGraph& graph) {
  const OnnxValue scaled =
      graph.Add("Mul", Values{x, graph.Number(std::sqrt(.5f))});
  const OnnxValue erf = graph.Add("Erf", Values{scaled});
  const OnnxValue one_more = graph.Add("Add", Values{erf, graph.Number(1)});
  const OnnxValue doubled = graph.Add("Mul", Values{x, one_more});
  return graph.Add("Mul", Values{doubled, graph.Number(.5f)});
}

absl::StatusOr<OnnxValue> AddDense(const OnnxLayer& layer, OnnxGraph& graph) {
  const job::Dense& spec = layer.spec.dense();
  OnnxValue y =
      graph.Add("MatMul", Values{layer.inputs[0], layer.variables[0]});
  y = AddIf(spec.use_bias(), y, "Add", layer.variables.back(), graph);
  return AddOnnxActivation(spec.activation(), y, graph);
}

absl::StatusOr<OnnxValue> AddActivationLayer(const OnnxLayer& layer,
                                             OnnxGraph& graph) {
  return AddOnnxActivation(layer.spec.activation(), layer.inputs[0], graph);
}

// Flatten and reshape: the same bytes.
absl::StatusOr<OnnxValue> AddView(const OnnxLayer& layer, OnnxGraph& graph) {
  return AddReshape(layer.inputs[0], layer.output_shape, graph);
}

absl::StatusOr<OnnxValue> AddConv2D(const OnnxLayer& layer, OnnxGraph& graph) {
  const job::Conv2D& spec = layer.spec.conv2d();
  ASSIGN_OR_RETURN(const std::vector<Attribute> window,
                   WindowAttributes(layer.shapes[0], spec.kernel_size(),
                                    spec.stride(), spec.padding()));
  Values inputs = {AddChannelsFirst(layer.inputs[0], graph),
                   AddTranspose(layer.variables[0], {3, 2, 0, 1}, graph)};
  if (spec.use_bias()) inputs.push_back(layer.variables[1]);
  const OnnxValue y = AddChannelsLast(graph.Add("Conv", inputs, window), graph);
  return AddOnnxActivation(spec.activation(), y, graph);
}

absl::StatusOr<OnnxValue> AddPool(absl::string_view op, const job::Pool& spec,
                                  const OnnxLayer& layer, OnnxGraph& graph) {
  ASSIGN_OR_RETURN(const std::vector<Attribute> window,
                   WindowAttributes(layer.shapes[0], spec.pool_size(),
                                    spec.stride(), spec.padding()));
  const Values images = {AddChannelsFirst(layer.inputs[0], graph)};
  return AddChannelsLast(graph.Add(op, images, window), graph);
}

absl::StatusOr<OnnxValue> AddMaxPool(const OnnxLayer& layer, OnnxGraph& graph) {
  return AddPool("MaxPool", layer.spec.max_pool(), layer, graph);
}

absl::StatusOr<OnnxValue> AddAveragePool(const OnnxLayer& layer,
                                         OnnxGraph& graph) {
  return AddPool("AveragePool", layer.spec.average_pool(), layer, graph);
}

absl::StatusOr<OnnxValue> AddGlobalAveragePool(const OnnxLayer& layer,
                                               OnnxGraph& graph) {
  return AddMean(layer.inputs[0], {1, 2}, /*keeps=*/false, graph);
}

// (x - mean) · gamma / √(variance + epsilon) + beta. A `scale` or `center` that
// the layer lacks is empty.
OnnxValue AddNormalized(const OnnxValue& centered, const OnnxValue& variance,
                        float epsilon, const OnnxValue& gamma,
                        const OnnxValue& beta, OnnxGraph& graph) {
  const OnnxValue deviation = graph.Add(
      "Sqrt",
      Values{graph.Add("Add", Values{variance, graph.Number(epsilon)})});
  OnnxValue y = graph.Add("Div", Values{centered, deviation});
  y = AddIf(!gamma.empty(), y, "Mul", gamma, graph);
  return AddIf(!beta.empty(), y, "Add", beta, graph);
}

absl::StatusOr<OnnxValue> AddBatchNormalization(const OnnxLayer& layer,
                                                OnnxGraph& graph) {
  const job::BatchNormalization& spec = layer.spec.batch_normalization();
  size_t next = 0;
  const OnnxValue gamma = spec.scale() ? layer.variables[next++] : "";
  const OnnxValue beta = spec.center() ? layer.variables[next++] : "";
  const OnnxValue mean = layer.variables[next++];
  const OnnxValue variance = layer.variables[next];
  return AddNormalized(graph.Add("Sub", Values{layer.inputs[0], mean}),
                       variance, static_cast<float>(spec.epsilon()), gamma,
                       beta, graph);
}

absl::StatusOr<OnnxValue> AddLayerNormalization(const OnnxLayer& layer,
                                                OnnxGraph& graph) {
  const job::LayerNormalization& spec = layer.spec.layer_normalization();
  size_t next = 0;
  const OnnxValue gamma = spec.scale() ? layer.variables[next++] : "";
  const OnnxValue beta = spec.center() ? layer.variables[next] : "";
  const OnnxValue mean = AddMean(layer.inputs[0], {-1}, /*keeps=*/true, graph);
  const OnnxValue centered = graph.Add("Sub", Values{layer.inputs[0], mean});
  const OnnxValue variance =
      AddMean(graph.Add("Mul", Values{centered, centered}), {-1},
              /*keeps=*/true, graph);
  return AddNormalized(centered, variance, static_cast<float>(spec.epsilon()),
                       gamma, beta, graph);
}

// The moments are over the pixels and the channels of a group.
absl::StatusOr<OnnxValue> AddGroupNormalization(const OnnxLayer& layer,
                                                OnnxGraph& graph) {
  const job::GroupNormalization& spec = layer.spec.group_normalization();
  const int64_t channels = layer.output_shape.back();
  const int64_t groups = spec.groups() == -1 ? channels : spec.groups();
  const OnnxValue x = AddReshape(
      layer.inputs[0],
      {ElementsOf(layer.output_shape) / channels, groups, channels / groups},
      graph);
  const OnnxValue mean = AddMean(x, {1, 3}, /*keeps=*/true, graph);
  const OnnxValue centered = graph.Add("Sub", Values{x, mean});
  const OnnxValue variance =
      AddMean(graph.Add("Mul", Values{centered, centered}), {1, 3},
              /*keeps=*/true, graph);
  OnnxValue y = AddReshape(
      AddNormalized(centered, variance, static_cast<float>(spec.epsilon()), "",
                    "", graph),
      layer.output_shape, graph);
  if (spec.scale()) y = graph.Add("Mul", Values{y, layer.variables[0]});
  return AddIf(spec.center(), y, "Add",
               spec.center() ? layer.variables.back() : "", graph);
}

absl::StatusOr<OnnxValue> AddRmsNormalization(const OnnxLayer& layer,
                                              OnnxGraph& graph) {
  const OnnxValue& x = layer.inputs[0];
  const OnnxValue squares =
      AddMean(graph.Add("Mul", Values{x, x}), {-1}, /*keeps=*/true, graph);
  return AddNormalized(
      x, squares, static_cast<float>(layer.spec.rms_normalization().epsilon()),
      layer.variables[0], "", graph);
}

// Dropout changes nothing in evaluation.
absl::StatusOr<OnnxValue> AddNothing(const OnnxLayer& layer, OnnxGraph&) {
  return layer.inputs[0];
}

absl::StatusOr<OnnxValue> AddTerms(const OnnxLayer& layer, OnnxGraph& graph) {
  return graph.Add("Sum", layer.inputs);
}

absl::StatusOr<OnnxValue> AddProduct(const OnnxLayer& layer, OnnxGraph& graph) {
  OnnxValue product = layer.inputs[0];
  for (const OnnxValue& factor : absl::MakeConstSpan(layer.inputs).subspan(1)) {
    product = graph.Add("Mul", Values{product, factor});
  }
  return product;
}

absl::StatusOr<OnnxValue> AddConcatenate(const OnnxLayer& layer,
                                         OnnxGraph& graph) {
  const int64_t axis = layer.spec.concatenate().axis();
  return graph.Add("Concat", layer.inputs,
                   {{Attribute("axis", axis < 0 ? axis : axis + 1)}});
}

absl::StatusOr<OnnxValue> AddPad(const OnnxLayer& layer, OnnxGraph& graph) {
  const job::Pad& spec = layer.spec.pad();
  Axes pads = {0};
  pads.insert(pads.end(), spec.before().begin(), spec.before().end());
  pads.push_back(0);
  pads.insert(pads.end(), spec.after().begin(), spec.after().end());
  return graph.Add("Pad", Values{layer.inputs[0], graph.Numbers(pads)});
}

absl::StatusOr<OnnxValue> AddEmbeddingBag(const OnnxLayer& layer,
                                          OnnxGraph& graph) {
  const job::EmbeddingBag& spec = layer.spec.embedding_bag();
  const OnnxValue weights =
      graph.Add("Unsqueeze", Values{layer.weights, graph.Numbers({2})});
  OnnxValue y = AddSum(graph.Add("Mul", Values{layer.inputs[0], weights}), 1,
                       /*keeps=*/false, graph);
  if (spec.combiner() == job::EmbeddingBag::MEAN) {
    const OnnxValue total = AddSum(layer.weights, 1, /*keeps=*/true, graph);
    const OnnxValue is_zero =
        graph.Add("Equal", Values{total, graph.Number(0)});
    const OnnxValue divisor =
        graph.Add("Where", Values{is_zero, graph.Number(1), total});
    const OnnxValue mean = graph.Add("Div", Values{y, divisor});
    y = graph.Add("Where", Values{is_zero, graph.Number(0), mean});
  }
  if (!spec.use_bias()) return y;  // no variables at all
  return graph.Add("Add", Values{y, layer.variables.back()});
}

// ½ · Σ over the width of ((Σ over fields x)² - Σ over fields x²).
absl::StatusOr<OnnxValue> AddFactorizationMachine(const OnnxLayer& layer,
                                                  OnnxGraph& graph) {
  const OnnxValue& x = layer.inputs[0];
  const OnnxValue sum = AddSum(x, 1, /*keeps=*/false, graph);
  const OnnxValue square_of_sum = graph.Add("Mul", Values{sum, sum});
  const OnnxValue sum_of_squares =
      AddSum(graph.Add("Mul", Values{x, x}), 1, /*keeps=*/false, graph);
  const OnnxValue pairs =
      graph.Add("Sub", Values{square_of_sum, sum_of_squares});
  return graph.Add("Mul", Values{AddSum(pairs, 1, /*keeps=*/true, graph),
                                 graph.Number(.5f)});
}

// The products of all fields with all, of which the layer's pairs are chosen.
absl::StatusOr<OnnxValue> AddDotInteraction(const OnnxLayer& layer,
                                            OnnxGraph& graph) {
  const int64_t fields = layer.shapes[0][0];
  const bool with_itself = layer.spec.dot_interaction().self_interaction();
  Axes pairs;
  for (int64_t f = 0; f < fields; ++f) {
    for (int64_t g = 0; g < f + with_itself; ++g) {
      pairs.push_back(f * fields + g);
    }
  }
  const OnnxValue& x = layer.inputs[0];
  const OnnxValue products =
      graph.Add("MatMul", Values{x, AddTranspose(x, {0, 2, 1}, graph)});
  return graph.Add("Gather",
                   Values{AddReshape(products, {fields * fields}, graph),
                          graph.Numbers(pairs)},
                   {{Attribute("axis", int64_t{1})}});
}

// x0 ⊙ (x · W + bias) + x.
absl::StatusOr<OnnxValue> AddCross(const OnnxLayer& layer, OnnxGraph& graph) {
  const job::Cross& spec = layer.spec.cross();
  const OnnxValue& x = layer.inputs.back();
  size_t next = 0;
  OnnxValue inner = x;
  if (spec.projection_dim() > 0) {
    inner = graph.Add("MatMul", Values{inner, layer.variables[next++]});
  }
  inner = graph.Add("MatMul", Values{inner, layer.variables[next]});
  inner = AddIf(spec.use_bias(), inner, "Add", layer.variables.back(), graph);
  return graph.Add("Add",
                   Values{graph.Add("Mul", Values{layer.inputs[0], inner}), x});
}

// w [n] times x [n, width], as a product of matrices.
absl::StatusOr<OnnxValue> AddWeightedSum(const OnnxLayer& layer,
                                         OnnxGraph& graph) {
  const int64_t count = layer.shapes[0][0];
  const OnnxValue row = AddReshape(layer.inputs[0], {1, count}, graph);
  return AddReshape(graph.Add("MatMul", Values{row, layer.inputs[1]}),
                    layer.output_shape, graph);
}

// x over the larger of its last axis's L2 norm and 1e-6 (kLargestScale of
// ml/kernel/interaction/dot_products.h).
OnnxValue AddNormalized(const OnnxValue& x, OnnxGraph& graph) {
  const OnnxValue squares = AddSum(graph.Add("Mul", Values{x, x}), -1,
                                   /*keeps=*/true, graph);
  const OnnxValue least =
      graph.Add("Max", Values{squares, graph.Number(1e-12f)});
  return graph.Add("Div", Values{x, graph.Add("Sqrt", Values{least})});
}

// a [n, width] times the transpose of b [m, width]; an input of one axis is a
// matrix of one row.
absl::StatusOr<OnnxValue> AddDot(const OnnxLayer& layer, OnnxGraph& graph) {
  const int64_t width = layer.shapes[0].back();
  Values sides;
  for (size_t i = 0; i < 2; ++i) {
    const Shape& shape = layer.shapes[i];
    const int64_t rows = shape.size() == 1 ? 1 : shape[0];
    OnnxValue side = AddReshape(layer.inputs[i], {rows, width}, graph);
    if (layer.spec.dot().normalize()) side = AddNormalized(side, graph);
    sides.push_back(side);
  }
  sides[1] = AddTranspose(sides[1], {0, 2, 1}, graph);
  return AddReshape(graph.Add("MatMul", sides), layer.output_shape, graph);
}

using AddFunction = absl::StatusOr<OnnxValue> (*)(const OnnxLayer& layer,
                                                  OnnxGraph& graph);

// Returns null for a layer that ONNX has no operator for.
AddFunction FunctionFor(job::Layer::KindCase kind) {
  switch (kind) {
    case job::Layer::kDense:
      return AddDense;
    case job::Layer::kActivation:
      return AddActivationLayer;
    case job::Layer::kFlatten:
    case job::Layer::kReshape:
      return AddView;
    case job::Layer::kConv2D:
      return AddConv2D;
    case job::Layer::kBatchNormalization:
      return AddBatchNormalization;
    case job::Layer::kMaxPool:
      return AddMaxPool;
    case job::Layer::kAveragePool:
      return AddAveragePool;
    case job::Layer::kGlobalAveragePool:
      return AddGlobalAveragePool;
    case job::Layer::kDropout:
    case job::Layer::kEmbedding:  // its rows
      return AddNothing;
    case job::Layer::kAdd:
      return AddTerms;
    case job::Layer::kMultiply:
      return AddProduct;
    case job::Layer::kConcatenate:
      return AddConcatenate;
    case job::Layer::kEmbeddingBag:
      return AddEmbeddingBag;
    case job::Layer::kFactorizationMachine:
      return AddFactorizationMachine;
    case job::Layer::kLayerNormalization:
      return AddLayerNormalization;
    case job::Layer::kPad:
      return AddPad;
    case job::Layer::kDotInteraction:
      return AddDotInteraction;
    case job::Layer::kCross:
      return AddCross;
    case job::Layer::kDot:
      return AddDot;
    case job::Layer::kWeightedSum:
      return AddWeightedSum;
    case job::Layer::kConv1D:
      return AddOnnxConv1D;
    case job::Layer::kDepthwiseConv2D:
      return AddOnnxDepthwiseConv2D;
    case job::Layer::kSeparableConv2D:
      return AddOnnxSeparableConv2D;
    case job::Layer::kConv2DTranspose:
      return AddOnnxConv2DTranspose;
    case job::Layer::kGroupNormalization:
      return AddGroupNormalization;
    case job::Layer::kRmsNormalization:
      return AddRmsNormalization;
    case job::Layer::kLstm:
      return AddOnnxLstm;
    case job::Layer::kGru:
      return AddOnnxGru;
    case job::Layer::kMultiHeadAttention:
      return AddOnnxMultiHeadAttention;
    case job::Layer::kPositionalEmbedding:
      return AddOnnxPositionalEmbedding;
    case job::Layer::kGlobalAveragePool1D:
      return AddOnnxGlobalAveragePool1D;
    case job::Layer::kGlobalMaxPool1D:
      return AddOnnxGlobalMaxPool1D;
    case job::Layer::kCustom:
    case job::Layer::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace

OnnxValue AddOnnxActivation(job::Activation activation, const OnnxValue& x,
                            OnnxGraph& graph) {
  const Values values = {x};
  switch (activation) {
    case job::ACTIVATION_UNSPECIFIED:
      break;
    case job::RELU:
      return graph.Add("Relu", values);
    case job::SIGMOID:
      return graph.Add("Sigmoid", values);
    case job::TANH:
      return graph.Add("Tanh", values);
    case job::GELU:
      return AddGelu(x, graph);
    case job::SOFTMAX:
      return graph.Add("Softmax", values, {{Attribute("axis", int64_t{-1})}});
    case job::LEAKY_RELU:
      return graph.Add("LeakyRelu", values,
                       {{Attribute("alpha", kLeakyReluSlope)}});
    case job::SILU:
      return graph.Add("Mul", Values{x, graph.Add("Sigmoid", values)});
    case job::SOFTPLUS:
      return graph.Add("Softplus", values);
    case job::ELU:
      return graph.Add("Elu", values, {{Attribute("alpha", 1.0f)}});
  }
  return x;
}

absl::StatusOr<OnnxValue> AddOnnxLayer(const OnnxLayer& layer,
                                       OnnxGraph& graph) {
  const AddFunction add = FunctionFor(layer.spec.kind_case());
  if (add != nullptr) return add(layer, graph);
  return absl::UnimplementedError(
      "a custom layer: ONNX has no operator for it; export the variables with "
      "another --format");
}

}  // namespace parasol
