#include "tool/exchange/onnx/onnx_graph.h"

#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr char kMlDomain[] = "ai.onnx.ml";

onnx::ValueInfoProto ValueInfo(absl::string_view name,
                               onnx::TensorProto::DataType type,
                               absl::Span<const int64_t> shape,
                               absl::string_view description) {
  onnx::ValueInfoProto info;
  info.set_name(std::string(name));
  info.set_doc_string(std::string(description));
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("examples");
  for (const int64_t axis : shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (axis >= 0) {
      dim.set_dim_value(axis);
    } else {
      dim.set_dim_param("ids");
    }
  }
  return info;
}

template <typename T>
void SetElements(absl::Span<const T> values, onnx::TensorProto& tensor) {
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(T)));
}

}  // namespace

OnnxGraph::Attribute::Attribute(absl::string_view name, int64_t value) {
  proto.set_name(std::string(name));
  proto.set_type(onnx::AttributeProto::INT);
  proto.set_i(value);
}

OnnxGraph::Attribute::Attribute(absl::string_view name, float value) {
  proto.set_name(std::string(name));
  proto.set_type(onnx::AttributeProto::FLOAT);
  proto.set_f(value);
}

OnnxGraph::Attribute::Attribute(absl::string_view name,
                                absl::Span<const int64_t> values) {
  proto.set_name(std::string(name));
  proto.set_type(onnx::AttributeProto::INTS);
  proto.mutable_ints()->Add(values.begin(), values.end());
}

OnnxGraph::Attribute::Attribute(absl::string_view name,
                                absl::string_view text) {
  proto.set_name(std::string(name));
  proto.set_type(onnx::AttributeProto::STRING);
  proto.set_s(std::string(text));
}

OnnxValue OnnxGraph::AddInput(absl::string_view name,
                              onnx::TensorProto::DataType type,
                              absl::Span<const int64_t> shape,
                              absl::string_view description) {
  *proto_.add_input() = ValueInfo(name, type, shape, description);
  return OnnxValue(name);
}

void OnnxGraph::AddOutput(const OnnxValue& value,
                          absl::Span<const int64_t> shape,
                          absl::string_view description) {
  *proto_.add_output() =
      ValueInfo(value, onnx::TensorProto::FLOAT, shape, description);
}

OnnxValue OnnxGraph::Add(absl::string_view op,
                         absl::Span<const OnnxValue> inputs,
                         absl::Span<const Attribute> attributes,
                         absl::string_view name) {
  const OnnxValue output = name.empty() ? NewName(op) : OnnxValue(name);
  onnx::NodeProto& node = *proto_.add_node();
  node.set_op_type(std::string(op));
  node.set_name(output);
  for (const OnnxValue& input : inputs) node.add_input(input);
  node.add_output(output);
  for (const Attribute& attribute : attributes) {
    *node.add_attribute() = attribute.proto;
  }
  return output;
}

OnnxValue OnnxGraph::AddPlaces(const OnnxValue& numbers,
                               absl::Span<const int64_t> keys, int64_t other) {
  // The operator needs a key.
  const int64_t zero[] = {0};
  if (keys.empty()) keys = zero;
  std::vector<int64_t> places(keys.size());
  std::iota(places.begin(), places.end(), 0);
  const Attribute attributes[] = {
      {"keys_int64s", keys},
      {"values_int64s", absl::MakeConstSpan(places)},
      {"default_int64", other}};
  const OnnxValue output = Add("LabelEncoder", {numbers}, attributes);
  proto_.mutable_node()->rbegin()->set_domain(kMlDomain);
  return output;
}

OnnxValue OnnxGraph::Numbers(absl::Span<const int64_t> values) {
  OnnxValue& known = numbers_[{values.begin(), values.end()}];
  if (!known.empty()) return known;
  known = NewName("numbers");
  onnx::TensorProto& tensor = *proto_.add_initializer();
  tensor.set_name(known);
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  SetElements(values, tensor);
  return known;
}

OnnxValue OnnxGraph::Number(float value) {
  OnnxValue& known = floats_[value];
  if (!known.empty()) return known;
  known = AddTensor(NewName("number"), {});
  SetElements(absl::MakeConstSpan(&value, 1),
              *proto_.mutable_initializer()->rbegin());
  return known;
}

OnnxValue OnnxGraph::AddTensor(absl::string_view name,
                               absl::Span<const int64_t> shape) {
  onnx::TensorProto& tensor = *proto_.add_initializer();
  tensor.set_name(std::string(name));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.mutable_dims()->Add(shape.begin(), shape.end());
  return OnnxValue(name);
}

void OnnxGraph::Rename(const OnnxValue& value, absl::string_view to) {
  const OnnxValue values[] = {value};
  Add("Identity", values, {}, to);
}

std::string OnnxGraph::NewName(absl::string_view op) {
  return absl::StrCat("/", absl::AsciiStrToLower(op), "_", ++names_);
}

}  // namespace parasol
