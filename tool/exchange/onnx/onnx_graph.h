#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_GRAPH_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/onnx.pb.h"

namespace parasol {

// Versions of the operator sets whose operators the nodes are.
inline constexpr int64_t kOnnxOpset = 13;
inline constexpr int64_t kOnnxMlOpset = 2;  // ai.onnx.ml, for LabelEncoder
// The version of the file format that came with that operator set.
inline constexpr int64_t kOnnxIrVersion = 7;

// The name of a value in an ONNX graph: of an input, an initializer, or what a
// node computes.
using OnnxValue = std::string;

// An ONNX graph that is being built. Every value has axis 0 for the examples,
// but for initializers. Not thread-safe.
class OnnxGraph {
 public:
  // An attribute of a node.
  struct Attribute {
    Attribute(absl::string_view name, int64_t value);
    Attribute(absl::string_view name, float value);
    Attribute(absl::string_view name, absl::Span<const int64_t> values);
    Attribute(absl::string_view name, absl::string_view text);

    onnx::AttributeProto proto;
  };

  // Adds an input or an output of the graph: [examples, shape...], where -1 is
  // any size, of `type`.
  OnnxValue AddInput(absl::string_view name, onnx::TensorProto::DataType type,
                     absl::Span<const int64_t> shape,
                     absl::string_view description);
  void AddOutput(const OnnxValue& value, absl::Span<const int64_t> shape,
                 absl::string_view description);

  // Adds a node of the default operator set with one output and returns it.
  // `name` is the output's name, or "<op>_<number>" if it is empty.
  OnnxValue Add(absl::string_view op, absl::Span<const OnnxValue> inputs,
                absl::Span<const Attribute> attributes = {},
                absl::string_view name = "");

  // Adds a LabelEncoder, which gives each of `keys` its place in the list, and
  // any other number `other`.
  OnnxValue AddPlaces(const OnnxValue& numbers, absl::Span<const int64_t> keys,
                      int64_t other);

  // Returns an initializer with these numbers; equal ones are added once.
  OnnxValue Numbers(absl::Span<const int64_t> values);
  OnnxValue Number(float value);

  // Adds an initializer of float32, whose elements the caller adds later.
  OnnxValue AddTensor(absl::string_view name, absl::Span<const int64_t> shape);

  // Makes `to`, a name that nothing has, another name of `value`.
  void Rename(const OnnxValue& value, absl::string_view to);

  const onnx::GraphProto& proto() const { return proto_; }
  onnx::GraphProto Take() && { return std::move(proto_); }

 private:
  std::string NewName(absl::string_view op);

  onnx::GraphProto proto_;
  int64_t names_ = 0;
  std::map<std::vector<int64_t>, OnnxValue> numbers_;
  std::map<float, OnnxValue> floats_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_GRAPH_H_
