#include "tool/exchange/onnx/onnx_sequences.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/layer/sequence/attention_inputs.h"
#include "tool/exchange/onnx/onnx_nodes.h"

namespace parasol {
namespace {

using Attribute = OnnxGraph::Attribute;
using Values = std::vector<OnnxValue>;
using Axes = std::vector<int64_t>;

// A recurrent layer as ONNX's operators have it.
struct OnnxRecurrent {
  std::string op;
  int64_t units = 0;
  // The operator's gates, as places of the layer's.
  Axes gates;
  bool has_bias = false;
  // True: the bias has two rows, for the inputs and for the state.
  bool has_recurrent_bias = false;
  bool return_sequences = false;
  bool go_backwards = false;
  job::Bidirectional::Merge merge = job::Bidirectional::ONE_DIRECTION;
  std::vector<Attribute> attributes = {};

  bool has_two() const { return merge != job::Bidirectional::ONE_DIRECTION; }
  size_t variables() const { return has_bias ? 3 : 2; }
};

// A kernel [rows, gates · units] as [1, gates · units, rows], in the operator's
// order of gates.
OnnxValue AddGates(const OnnxRecurrent& r, const OnnxValue& kernel,
                   int64_t rows, OnnxGraph& graph) {
  const int64_t gates = static_cast<int64_t>(r.gates.size());
  const OnnxValue cut =
      AddVariableReshape(kernel, {rows, gates, r.units}, graph);
  const OnnxValue ordered =
      graph.Add("Gather", Values{cut, graph.Numbers(r.gates)},
                {{Attribute("axis", int64_t{1})}});
  const OnnxValue whole =
      AddVariableReshape(ordered, {1, rows, gates * r.units}, graph);
  return AddTranspose(whole, {0, 2, 1}, graph);
}

// The biases of the inputs, and then of the state, [1, 2 · gates · units].
OnnxValue AddBiases(const OnnxRecurrent& r, const OnnxValue& bias,
                    OnnxGraph& graph) {
  const int64_t size = static_cast<int64_t>(r.gates.size()) * r.units;
  if (r.has_recurrent_bias) {
    return AddVariableReshape(bias, {1, 2 * size}, graph);
  }
  const OnnxValue ordered =
      AddVariableReshape(AddGates(r, bias, 1, graph), {1, size}, graph);
  const OnnxValue zeros = graph.Add("Sub", Values{ordered, ordered});
  return graph.Add("Concat", Values{ordered, zeros},
                   {{Attribute("axis", int64_t{1})}});
}

// Puts the variables of both directions together, if there are two.
OnnxValue AddJoined(const Values& directions, OnnxGraph& graph) {
  if (directions.size() == 1) return directions[0];
  return graph.Add("Concat", directions, {{Attribute("axis", int64_t{0})}});
}

// One direction's outputs of the operator's [steps, directions, examples,
// units]: [examples, steps, units], or [examples, units] of the step that is
// read last.
OnnxValue AddDirection(const OnnxRecurrent& r, const OnnxValue& outputs,
                       int64_t direction, int64_t steps, OnnxGraph& graph) {
  const bool backwards = direction == 1 || r.go_backwards;
  const OnnxValue own = graph.Add(
      "Squeeze",
      Values{graph.Add("Gather", Values{outputs, graph.Numbers({direction})},
                       {{Attribute("axis", int64_t{1})}}),
             graph.Numbers({1})});
  const auto gather = [&](const Axes& places) {
    return graph.Add("Gather", Values{own, graph.Numbers(places)},
                     {{Attribute("axis", int64_t{0})}});
  };
  if (!r.return_sequences) {
    return graph.Add("Squeeze", Values{gather({backwards ? 0 : steps - 1}),
                                       graph.Numbers({0})});
  }
  if (!r.go_backwards) return AddTranspose(own, {1, 0, 2}, graph);
  // The layer's steps are in the order in which it makes them.
  Axes turned;
  for (int64_t step = steps - 1; step >= 0; --step) turned.push_back(step);
  return AddTranspose(gather(turned), {1, 0, 2}, graph);
}

OnnxValue AddMerged(job::Bidirectional::Merge merge, const Values& both,
                    OnnxGraph& graph) {
  switch (merge) {
    case job::Bidirectional::CONCAT:
      return graph.Add("Concat", both, {{Attribute("axis", int64_t{-1})}});
    case job::Bidirectional::SUM:
      return graph.Add("Add", both);
    case job::Bidirectional::MUL:
      return graph.Add("Mul", both);
    case job::Bidirectional::AVE:
      return graph.Add("Mul",
                       Values{graph.Add("Add", both), graph.Number(.5f)});
    case job::Bidirectional::ONE_DIRECTION:
      break;
  }
  return both[0];
}

absl::StatusOr<OnnxValue> AddRecurrent(const OnnxRecurrent& r,
                                       const OnnxLayer& layer,
                                       OnnxGraph& graph) {
  if (layer.inputs.size() > 1) {
    return absl::UnimplementedError(
        "a recurrent layer with a mask: ONNX knows lengths of sequences alone; "
        "export the variables with another --format");
  }
  Values kernels, recurrent_kernels, biases;
  const int64_t directions = r.has_two() ? 2 : 1;
  for (int64_t d = 0; d < directions; ++d) {
    const OnnxValue* const variables = &layer.variables[d * r.variables()];
    kernels.push_back(AddGates(r, variables[0], layer.shapes[0][1], graph));
    recurrent_kernels.push_back(AddGates(r, variables[1], r.units, graph));
    if (r.has_bias) biases.push_back(AddBiases(r, variables[2], graph));
  }
  Values inputs = {AddTranspose(layer.inputs[0], {1, 0, 2}, graph),
                   AddJoined(kernels, graph),
                   AddJoined(recurrent_kernels, graph)};
  if (r.has_bias) inputs.push_back(AddJoined(biases, graph));
  std::vector<Attribute> attributes = r.attributes;
  attributes.push_back(Attribute("hidden_size", r.units));
  attributes.push_back(
      Attribute("direction", absl::string_view(r.has_two() ? "bidirectional"
                                               : r.go_backwards ? "reverse"
                                                                : "forward")));
  const OnnxValue outputs = graph.Add(r.op, inputs, attributes);
  Values both;
  for (int64_t d = 0; d < directions; ++d) {
    both.push_back(AddDirection(r, outputs, d, layer.shapes[0][0], graph));
  }
  return AddMerged(r.merge, both, graph);
}

// The product of each step with a kernel, as a matrix, and its bias; an empty
// bias stands for none.
OnnxValue AddProjection(const OnnxValue& x, const OnnxValue& kernel,
                        const OnnxValue& bias, int64_t inputs, int64_t outputs,
                        OnnxGraph& graph) {
  const OnnxValue y = graph.Add(
      "MatMul",
      Values{x, AddVariableReshape(kernel, {inputs, outputs}, graph)});
  if (bias.empty()) return y;
  return graph.Add("Add",
                   Values{y, AddVariableReshape(bias, {outputs}, graph)});
}

// 1 where a query sees a key, and 0 elsewhere, in a shape that broadcasts to
// [examples, heads, queries, keys]; empty if all see all.
OnnxValue AddSeenKeys(const job::MultiHeadAttention& spec,
                      const AttentionInputs& fit, const OnnxLayer& layer,
                      OnnxGraph& graph) {
  OnnxValue seen;
  if (spec.masked()) {
    const int64_t queries = fit.mask_query == 0 ? 1 : fit.queries;
    seen = AddSeen(layer.inputs[fit.mask], {1, queries, fit.keys}, graph);
  }
  if (!spec.causal()) return seen;
  Axes earlier;
  for (int64_t i = 0; i < fit.queries; ++i) {
    for (int64_t j = 0; j < fit.keys; ++j) earlier.push_back(j <= i);
  }
  const OnnxValue shown =
      graph.Add("Cast", Values{graph.Numbers(earlier)},
                {{Attribute("to", int64_t{onnx::TensorProto::FLOAT})}});
  const OnnxValue causal =
      AddVariableReshape(shown, {1, 1, fit.queries, fit.keys}, graph);
  return seen.empty() ? causal : graph.Add("Mul", Values{seen, causal});
}

// The softmax over the keys that are seen; 0 elsewhere.
OnnxValue AddAttentionWeights(const OnnxValue& scores, const OnnxValue& seen,
                              OnnxGraph& graph) {
  constexpr float kFar = 1e9f;
  const std::vector<Attribute> last = {Attribute("axis", int64_t{-1})};
  if (seen.empty()) return graph.Add("Softmax", Values{scores}, last);
  const OnnxValue hidden = graph.Add("Sub", Values{graph.Number(1), seen});
  const OnnxValue moved = graph.Add(
      "Sub", Values{graph.Add("Mul", Values{scores, seen}),
                    graph.Add("Mul", Values{hidden, graph.Number(kFar)})});
  return graph.Add("Mul",
                   Values{graph.Add("Softmax", Values{moved}, last), seen});
}

}  // namespace

absl::StatusOr<OnnxValue> AddOnnxLstm(const OnnxLayer& layer,
                                      OnnxGraph& graph) {
  const job::Lstm& spec = layer.spec.lstm();
  return AddRecurrent({.op = "LSTM",
                       .units = spec.units(),
                       .gates = {0, 3, 1, 2},  // i, o, f, c
                       .has_bias = spec.use_bias(),
                       .return_sequences = spec.return_sequences(),
                       .go_backwards = spec.go_backwards(),
                       .merge = spec.bidirectional()},
                      layer, graph);
}

absl::StatusOr<OnnxValue> AddOnnxGru(const OnnxLayer& layer, OnnxGraph& graph) {
  const job::Gru& spec = layer.spec.gru();
  return AddRecurrent(
      {.op = "GRU",
       .units = spec.units(),
       .gates = {0, 1, 2},
       .has_bias = spec.use_bias(),
       .has_recurrent_bias = true,
       .return_sequences = spec.return_sequences(),
       .go_backwards = spec.go_backwards(),
       .merge = spec.bidirectional(),
       .attributes = {Attribute("linear_before_reset", int64_t{1})}},
      layer, graph);
}

absl::StatusOr<OnnxValue> AddOnnxMultiHeadAttention(const OnnxLayer& layer,
                                                    OnnxGraph& graph) {
  const job::MultiHeadAttention& spec = layer.spec.multi_head_attention();
  std::vector<LayerInput> inputs;
  for (const Shape& shape : layer.shapes) inputs.push_back({.shape = shape});
  ASSIGN_OR_RETURN(const AttentionInputs fit, FitAttention(spec, inputs));
  const size_t each = spec.use_bias() ? 2 : 1;
  const auto projected = [&](size_t projection, int input, int64_t width,
                             int64_t steps, int64_t head, const Axes& order) {
    const OnnxValue y = AddProjection(
        layer.inputs[input], layer.variables[each * projection],
        spec.use_bias() ? layer.variables[each * projection + 1] : "", width,
        spec.num_heads() * head, graph);
    return AddTranspose(AddReshape(y, {steps, spec.num_heads(), head}, graph),
                        order, graph);
  };
  const OnnxValue query = projected(0, 0, fit.query_width, fit.queries,
                                    spec.key_dim(), {0, 2, 1, 3});
  const OnnxValue key = projected(1, fit.key, fit.key_width, fit.keys,
                                  spec.key_dim(), {0, 2, 3, 1});
  const OnnxValue value = projected(2, fit.value, fit.value_width, fit.keys,
                                    spec.value_dim(), {0, 2, 1, 3});
  const float scale = 1 / std::sqrt(static_cast<float>(spec.key_dim()));
  const OnnxValue scores = graph.Add(
      "Mul",
      Values{graph.Add("MatMul", Values{query, key}), graph.Number(scale)});
  const OnnxValue weights =
      AddAttentionWeights(scores, AddSeenKeys(spec, fit, layer, graph), graph);
  const OnnxValue attended = AddTranspose(
      graph.Add("MatMul", Values{weights, value}), {0, 2, 1, 3}, graph);
  const int64_t width = spec.num_heads() * spec.value_dim();
  return AddProjection(AddReshape(attended, {fit.queries, width}, graph),
                       layer.variables[3 * each],
                       spec.use_bias() ? layer.variables[7] : "", width,
                       layer.output_shape[1], graph);
}

// The sines are computed in the graph, from the numbers of steps and columns.
absl::StatusOr<OnnxValue> AddOnnxPositionalEmbedding(const OnnxLayer& layer,
                                                     OnnxGraph& graph) {
  const job::PositionalEmbedding& spec = layer.spec.positional_embedding();
  if (!spec.sinusoidal()) {
    return graph.Add("Add", Values{layer.inputs[0], layer.variables[0]});
  }
  Axes steps, powers, odd;
  for (int64_t t = 0; t < layer.output_shape[0]; ++t) steps.push_back(t);
  for (int64_t i = 0; i < layer.output_shape[1]; ++i) {
    powers.push_back(i / 2 * 2);
    odd.push_back(i % 2);
  }
  const auto floats = [&](const Axes& numbers, const Shape& shape) {
    const OnnxValue cast =
        graph.Add("Cast", Values{graph.Numbers(numbers)},
                  {{Attribute("to", int64_t{onnx::TensorProto::FLOAT})}});
    return AddVariableReshape(cast, shape, graph);
  };
  const float rate =
      static_cast<float>(-std::log(spec.max_wavelength()) /
                         static_cast<double>(layer.output_shape[1]));
  const OnnxValue frequency = graph.Add(
      "Exp", Values{graph.Add(
                 "Mul", Values{floats(powers, {1, -1}), graph.Number(rate)})});
  const OnnxValue angle =
      graph.Add("Mul", Values{floats(steps, {-1, 1}), frequency});
  const OnnxValue is_odd = floats(odd, {1, -1});
  const OnnxValue is_even = graph.Add("Sub", Values{graph.Number(1), is_odd});
  const OnnxValue vectors = graph.Add(
      "Add",
      Values{
          graph.Add("Mul", Values{graph.Add("Sin", Values{angle}), is_even}),
          graph.Add("Mul", Values{graph.Add("Cos", Values{angle}), is_odd})});
  return graph.Add("Add", Values{layer.inputs[0], vectors});
}

absl::StatusOr<OnnxValue> AddOnnxGlobalAveragePool1D(const OnnxLayer& layer,
                                                     OnnxGraph& graph) {
  const OnnxValue& x = layer.inputs[0];
  if (layer.inputs.size() == 1) return AddMean(x, {1}, /*keeps=*/false, graph);
  const OnnxValue seen =
      AddSeen(layer.inputs[1], {layer.shapes[0][0], 1}, graph);
  const OnnxValue count = graph.Add(
      "Max", Values{AddSum(seen, 1, /*keeps=*/false, graph), graph.Number(1)});
  return graph.Add("Div", Values{AddSum(graph.Add("Mul", Values{x, seen}), 1,
                                        /*keeps=*/false, graph),
                                 count});
}

absl::StatusOr<OnnxValue> AddOnnxGlobalMaxPool1D(const OnnxLayer& layer,
                                                 OnnxGraph& graph) {
  constexpr float kLeast = -3e38f;
  const std::vector<Attribute> steps = {Ints("axes", {1}),
                                        Attribute("keepdims", int64_t{0})};
  const OnnxValue& x = layer.inputs[0];
  if (layer.inputs.size() == 1) return graph.Add("ReduceMax", Values{x}, steps);
  const OnnxValue seen =
      AddSeen(layer.inputs[1], {layer.shapes[0][0], 1}, graph);
  const OnnxValue is_seen =
      graph.Add("Greater", Values{seen, graph.Number(.5f)});
  const OnnxValue shown =
      graph.Add("Where", Values{is_seen, x, graph.Number(kLeast)});
  // 0 where no step is seen.
  return graph.Add("Mul", Values{graph.Add("ReduceMax", Values{shown}, steps),
                                 graph.Add("ReduceMax", Values{seen}, steps)});
}

}  // namespace parasol
