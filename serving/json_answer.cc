#include "serving/json_answer.h"

#include <charconv>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

void AppendNumber(float number, std::string& text) {
  if (std::isnan(number)) {
    text += "NaN";
  } else if (std::isinf(number)) {
    text += number > 0 ? "Infinity" : "-Infinity";
  } else {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number);
    text.append(buffer, end.ptr);
  }
}

// Bytes that are not UTF-8 are replaced: they come from a client or a file.
std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json TensorJson(const tensorflow::TensorInfo& info) {
  Json dims = Json::array();
  for (const auto& dim : info.tensor_shape().dim()) {
    dims.push_back({{"size", absl::StrCat(dim.size())}, {"name", ""}});
  }
  return {{"dtype", tensorflow::DataType_Name(info.dtype())},
          {"tensor_shape", {{"dim", dims}, {"unknown_rank", false}}},
          {"name", info.name()}};
}

// Returns an object with each tensor under its name, in the names' order.
Json TensorsJson(
    const google::protobuf::Map<std::string, tensorflow::TensorInfo>& tensors) {
  Json json = Json::object();
  const std::map<std::string, tensorflow::TensorInfo> sorted(tensors.begin(),
                                                             tensors.end());
  for (const auto& [name, info] : sorted) json[name] = TensorJson(info);
  return json;
}

// The place of an output's elements among all output elements of an example.
struct Slice {
  int64_t first = 0;
  int64_t width = 0;
  int64_t stride = 0;  // elements of all outputs
};

void AppendArray(absl::Span<const float> values, std::string& text) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ", ";
    AppendNumber(values[i], text);
  }
  text += ']';
}

// Appends an array of one array for each example.
void AppendRows(absl::Span<const float> values, int64_t rows,
                const Slice& slice, std::string& text) {
  text += '[';
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) text += ", ";
    AppendArray(values.subspan(row * slice.stride + slice.first, slice.width),
                text);
  }
  text += ']';
}

// Appends an array of one object for each example.
void AppendObjects(absl::Span<const float> values, int64_t rows,
                   absl::Span<const SignatureOutput> outputs,
                   std::string& text) {
  text += '[';
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) text += ", ";
    for (size_t i = 0; i < outputs.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "{" : ", ", "\"", outputs[i].name,
                      "\": ");
      AppendArray(values.subspan(0, outputs[i].width), text);
      values.remove_prefix(outputs[i].width);
    }
    text += '}';
  }
  text += ']';
}

}  // namespace

std::string PredictionsJson(absl::Span<const float> values,
                            absl::Span<const SignatureOutput> outputs,
                            bool is_rows) {
  int64_t width = 0;
  for (const SignatureOutput& output : outputs) width += output.width;
  const auto rows =
      width == 0 ? 0 : static_cast<int64_t>(values.size()) / width;
  std::string text = is_rows ? "{\"predictions\": " : "{\"outputs\": ";
  if (outputs.size() == 1) {
    AppendRows(values, rows, {.width = width, .stride = width}, text);
  } else if (is_rows) {
    AppendObjects(values, rows, outputs, text);
  } else {
    int64_t first = 0;
    for (const SignatureOutput& output : outputs) {
      absl::StrAppend(&text, first == 0 ? "{" : ", ", "\"", output.name,
                      "\": ");
      AppendRows(values, rows,
                 {.first = first, .width = output.width, .stride = width},
                 text);
      first += output.width;
    }
    text += '}';
  }
  text += "}\n";
  return text;
}

std::string ErrorJson(absl::string_view message) {
  return Text({{"error", std::string(message)}}) + "\n";
}

std::string StatusJson(absl::Span<const VersionState> versions) {
  Json list = Json::array();
  for (const VersionState& version : versions) {
    const char* state = "LOADING";
    if (version.is_served) state = "AVAILABLE";
    if (!version.refused.ok()) state = "END";
    list.push_back(
        {{"version", absl::StrCat(version.version)},
         {"state", state},
         {"status",
          {{"error_code", absl::StatusCodeToString(version.refused.code())},
           {"error_message", std::string(version.refused.message())}}}});
  }
  return Text({{"model_version_status", list}}) + "\n";
}

std::string MetadataJson(const ModelSignature& signature) {
  Json signatures = Json::object();
  const tensorflow::serving::SignatureDefMap defs = SignatureDefsOf(signature);
  for (const auto& [name, outputs] : signature.signatures) {
    const tensorflow::SignatureDef& def = defs.signature_def().at(name);
    signatures[name] = {{"inputs", TensorsJson(def.inputs())},
                        {"outputs", TensorsJson(def.outputs())},
                        {"method_name", def.method_name()}};
  }
  return Text({{"model_spec",
                {{"name", signature.model},
                 {"signature_name", ""},
                 {"version", absl::StrCat(signature.version)}}},
               {"metadata",
                {{"signature_def", {{"signature_def", signatures}}}}}}) +
         "\n";
}

}  // namespace parasol
