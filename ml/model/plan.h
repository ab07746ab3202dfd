#ifndef PARASOL_ML_MODEL_PLAN_H_
#define PARASOL_ML_MODEL_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ml/layer/layer.h"
#include "ml/model/graph.h"

namespace parasol {

// A tensor of a pass: an input of the model or what a step computes.
struct PlanTensor {
  bool is_input = false;
  size_t index = 0;  // of the dense input, or of the step
};

// A layer that computes something.
struct PlanStep {
  std::string name = {};
  std::shared_ptr<const Layer> layer = nullptr;
  // One for each of the layer's inputs; none: ids.
  std::vector<std::optional<PlanTensor>> inputs = {};
  int64_t outputs = 0;  // elements of one example
  size_t first_variable = 0;
  size_t num_variables = 0;
  // What it looks up: the ids of an input, in a table.
  struct Lookup {
    size_t table = 0;
    size_t id_input = 0;
  };
  std::optional<Lookup> lookup = std::nullopt;
};

// One operation of the backward pass, on gradient buffers.
struct BackwardOp {
  enum class Kind { kStep, kAdd, kCopy };
  Kind kind = Kind::kStep;

  // kStep: the backward pass of a step, whose dy is in `from`.
  size_t step = 0;
  std::vector<std::optional<size_t>> dx = {};  // one for each of its inputs
  bool has_input_gradients = false;
  // kAdd: to = from + other. kCopy: to = from.
  size_t from = 0;
  size_t other = 0;
  size_t to = 0;
};

// A gradient on its way. It is in use from its first operation to its last one.
struct GradientBuffer {
  int64_t elements = 0;  // of one example
  size_t first_op = 0;
  size_t last_op = 0;
};

// What a graph computes, in order, and where it leaves the gradients. Views are
// gone, and each relu that could be has become part of the layer before it.
struct Plan {
  std::vector<PlanStep> steps;
  size_t output = 0;  // the step whose output is the model's
  std::vector<BackwardOp> backward;
  std::vector<GradientBuffer> buffers;
  // Where the loss's gradient by the output goes, before the first operation.
  size_t output_gradient = 0;
};

Plan MakePlan(const Graph& graph);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_PLAN_H_
