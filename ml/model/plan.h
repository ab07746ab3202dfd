#ifndef PARASOL_ML_MODEL_PLAN_H_
#define PARASOL_ML_MODEL_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ml/device/elements.h"
#include "ml/layer/layer.h"
#include "ml/model/graph.h"

namespace parasol {

// A tensor of a pass: an input of the model or the output of a step.
struct PlanTensor {
  bool is_input = false;
  size_t index = 0;  // index of the dense input, or of the step
};

// A layer that computes something, unlike a view.
struct PlanStep {
  std::string name = {};
  std::shared_ptr<const Layer> layer = nullptr;
  // One tensor for each of the layer's inputs; nullopt for ids.
  std::vector<std::optional<PlanTensor>> inputs = {};
  int64_t outputs = 0;  // number of elements for one example
  // Type of the output's elements, and of the gradient by it.
  EdgeType type = EdgeType::kFloat32;
  // Place among the steps without conversions, but with the sums that others
  // compute: the seeds of steps are the same whatever their types.
  size_t number = 0;
  size_t first_variable = 0;
  size_t num_variables = 0;
  // The ids of an input that the layer reads, and the table in which it looks
  // them up; nullopt: it reads only how many there are.
  struct Lookup {
    std::optional<size_t> table = std::nullopt;
    size_t id_input = 0;
  };
  std::optional<Lookup> lookup = std::nullopt;
  // True if training changes a variable of the layer, or rows that it looks up.
  bool changes_variables = false;
  bool changes_rows = false;
};

// One operation of the backward pass, on gradient buffers.
struct BackwardOp {
  enum class Kind { kStep, kAdd, kCopy };
  Kind kind = Kind::kStep;

  // Step whose backward pass a kStep runs. Its dy is in buffer `from`.
  size_t step = 0;
  // Buffers of the gradients by the inputs, one each; nullopt: not wanted.
  std::vector<std::optional<size_t>> dx = {};
  bool has_input_gradients = false;
  // Buffers of the other kinds. kAdd: to = from + other. kCopy: to = from.
  size_t from = 0;
  size_t other = 0;
  size_t to = 0;
};

// A buffer for a gradient, in use from its first operation to its last one.
struct GradientBuffer {
  int64_t elements = 0;  // number for one example
  EdgeType type = EdgeType::kFloat32;
  size_t first_op = 0;
  size_t last_op = 0;
};

// An output of the model.
struct PlanOutput {
  size_t step = 0;       // the one whose output it is
  int64_t elements = 0;  // number for one example
  // Buffer that holds the gradient by it before the first operation; nullopt:
  // there is none.
  std::optional<size_t> gradient = std::nullopt;
};

// The operations of a graph, in order, and the buffers of their gradients.
// Views are gone, each relu that can be computed by the layer before it has
// become part of that layer, and so has, with edges of float32, a sum that the
// producer of one of its two terms can compute.
struct Plan {
  std::vector<PlanStep> steps;
  std::vector<PlanOutput> outputs;  // one for each of the graph
  std::vector<BackwardOp> backward;
  std::vector<GradientBuffer> buffers;
  // Indexed by dense input: the buffer that holds the gradient by it behind the
  // last operation; nullopt: it is not wanted, or no output with a gradient
  // depends on the input.
  std::vector<std::optional<size_t>> input_gradients;
};

// Gradients of a backward pass: by which outputs they are given, and by what
// they are wanted. They decide nothing about the forward pass.
struct PlannedGradients {
  std::vector<bool> outputs = {};    // one for each of the graph
  std::vector<bool> variables = {};  // one for each of the graph
  std::vector<bool> tables = {};     // one for each of the graph
  std::vector<bool> inputs = {};     // one for each dense input

  friend bool operator==(const PlannedGradients&,
                         const PlannedGradients&) = default;
};

// Returns what training goes by: outputs with a weight, and all that is not
// frozen.
PlannedGradients GradientsOfTraining(const Graph& graph);

// Makes the plan of a graph's passes. The backward pass computes `gradients`,
// or all that training goes by. `edges` is the device's Device::edge_type(). If
// it is bfloat16, tensors are bfloat16 as their layers' bfloat16_use() says,
// and steps that convert come between tensors of different types.
Plan MakePlan(const Graph& graph, EdgeType edges = EdgeType::kFloat32);
Plan MakePlan(const Graph& graph, const PlannedGradients& gradients,
              EdgeType edges = EdgeType::kFloat32);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PLAN_H_
