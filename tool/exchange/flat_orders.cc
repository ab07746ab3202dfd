#include "tool/exchange/flat_orders.h"

#include <cstddef>
#include <utility>

#include "ml/model/graph_inputs.h"

namespace parasol {
namespace {

using Shape = std::vector<int64_t>;

// The order of a value's elements.
struct ValueOrder {
  enum class Kind {
    kSame,   // as there; an image's axes are the other program's business
    kOther,  // element i here is `places`[i] there
    kUnknown,
  };
  Kind kind = Kind::kSame;
  RowOrder places = {};
};

bool IsImage(const Shape& shape) {
  return shape.size() == 3 && shape[2] > 1 && shape[0] * shape[1] > 1;
}

ValueOrder Unknown() { return {.kind = ValueOrder::Kind::kUnknown}; }

// The order of the elements of a flattened image [height, width, channels].
ValueOrder Flattened(const Shape& shape) {
  if (!IsImage(shape)) return {};
  const int64_t pixels = shape[0] * shape[1];
  const int64_t channels = shape[2];
  ValueOrder order = {.kind = ValueOrder::Kind::kOther};
  order.places.reserve(pixels * channels);
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      order.places.push_back(channel * pixels + pixel);
    }
  }
  return order;
}

class Orders {
 public:
  Orders(const job::Model& model, const Graph& graph)
      : graph_(graph),
        layers_(LayersOfNodes(model, graph)),
        values_(graph.num_values()) {}

  std::map<std::string, RowOrder> Find() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      values_[graph_.inputs.size() + i] = OrderOf(i);
    }
    return std::move(variables_);
  }

 private:
  Shape ShapeOf(size_t value) const {
    const GraphNode* const node = graph_.Producer(value);
    return node == nullptr ? graph_.inputs[value].what.shape
                           : node->layer->output_shape();
  }

  // The order of what a node computes; notes its variables' on the way.
  ValueOrder OrderOf(size_t index) {
    const GraphNode& node = graph_.nodes[index];
    if (layers_[index] == nullptr) return {};
    switch (layers_[index]->kind_case()) {
      case job::Layer::kFlatten:
      case job::Layer::kReshape:
        return View(node);
      case job::Layer::kConcatenate:
        return Joined(node);
      case job::Layer::kActivation:
      case job::Layer::kDropout:
      case job::Layer::kAdd:
      case job::Layer::kMultiply:
        return Common(node);
      case job::Layer::kBatchNormalization:
      case job::Layer::kRmsNormalization:
      case job::Layer::kLayerNormalization: {
        ValueOrder order = Common(node);
        Note(node, order);
        return order;
      }
      case job::Layer::kDense:
        // The bias has the order of the outputs.
        NoteFirst(node, values_[node.inputs[0]]);
        return {};
      default:
        return SameOrUnknown(node);
    }
  }

  ValueOrder View(const GraphNode& node) const {
    const ValueOrder& input = values_[node.inputs[0]];
    const Shape from = ShapeOf(node.inputs[0]);
    const Shape to = node.layer->output_shape();
    if (to.size() == 1 && IsImage(from)) return Flattened(from);
    if (to == from) return input;
    const bool has_order =
        input.kind != ValueOrder::Kind::kSame || IsImage(from) || IsImage(to);
    return has_order ? Unknown() : ValueOrder();
  }

  ValueOrder Joined(const GraphNode& node) const {
    ValueOrder all;
    int64_t first = 0;
    for (const size_t value : node.inputs) {
      const ValueOrder& input = values_[value];
      const Shape shape = ShapeOf(value);
      if (input.kind == ValueOrder::Kind::kUnknown) return Unknown();
      if (shape.size() != 1) continue;
      if (input.kind == ValueOrder::Kind::kOther) {
        all.kind = ValueOrder::Kind::kOther;
      }
      for (int64_t i = 0; i < shape[0]; ++i) {
        all.places.push_back(first +
                             (input.places.empty() ? i : input.places[i]));
      }
      first += shape[0];
    }
    return all.kind == ValueOrder::Kind::kOther ? all : ValueOrder();
  }

  // The order that all inputs have.
  ValueOrder Common(const GraphNode& node) const {
    const ValueOrder& first = values_[node.inputs[0]];
    for (const size_t value : node.inputs) {
      if (values_[value].kind != first.kind ||
          values_[value].places != first.places) {
        return Unknown();
      }
    }
    return first;
  }

  ValueOrder SameOrUnknown(const GraphNode& node) {
    for (const size_t value : node.inputs) {
      if (values_[value].kind == ValueOrder::Kind::kSame) continue;
      Note(node, Unknown());
      return Unknown();
    }
    return {};
  }

  void NoteVariable(size_t variable, const ValueOrder& order) {
    if (order.kind == ValueOrder::Kind::kSame) return;
    variables_[graph_.variables[variable].name] = order.places;
  }

  void NoteFirst(const GraphNode& node, const ValueOrder& order) {
    NoteVariable(node.first_variable, order);
  }

  void Note(const GraphNode& node, const ValueOrder& order) {
    for (size_t i = 0; i < node.layer->variables().size(); ++i) {
      NoteVariable(node.first_variable + i, order);
    }
  }

  const Graph& graph_;
  const std::vector<const job::Layer*> layers_;  // of the nodes
  std::vector<ValueOrder> values_;
  std::map<std::string, RowOrder> variables_;
};

}  // namespace

std::map<std::string, RowOrder> ChannelsFirstOrders(const job::Model& model,
                                                    const Graph& graph) {
  return Orders(model, graph).Find();
}

}  // namespace parasol
