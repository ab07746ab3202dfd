#include "deploy/tool/serving/json_answer.h"

#include <charconv>
#include <cmath>

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

Json TensorJson(absl::string_view dtype, absl::string_view name,
                absl::Span<const int64_t> axes, bool any_length) {
  Json dims = Json::array({{{"size", "-1"}, {"name", ""}}});
  for (const int64_t axis : axes) {
    dims.push_back({{"size", absl::StrCat(axis)}, {"name", ""}});
  }
  if (any_length) dims.push_back({{"size", "-1"}, {"name", ""}});
  return {{"dtype", std::string(dtype)},
          {"tensor_shape", {{"dim", dims}, {"unknown_rank", false}}},
          {"name", absl::StrCat(name, ":0")}};
}

absl::string_view TypeOf(GivenColumn::Kind kind) {
  switch (kind) {
    case GivenColumn::Kind::kNumbers:
      return "DT_FLOAT";
    case GivenColumn::Kind::kPixels:
      return "DT_UINT8";
    case GivenColumn::Kind::kIds:
      return "DT_INT64";
    case GivenColumn::Kind::kTexts:
    case GivenColumn::Kind::kSparse:
      break;
  }
  return "DT_STRING";
}

}  // namespace

std::string PredictionsJson(absl::Span<const float> values, int64_t width,
                            bool is_rows) {
  std::string text = is_rows ? "{\"predictions\": [" : "{\"outputs\": [";
  const auto columns = static_cast<size_t>(width);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % columns == 0) text += i == 0 ? "[" : "], [";
    if (i % columns != 0) text += ", ";
    AppendNumber(values[i], text);
  }
  text += values.empty() ? "]}\n" : "]]}\n";
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
  Json inputs = Json::object();
  for (const GivenColumn& column : signature.columns) {
    inputs[column.name] = TensorJson(TypeOf(column.kind), column.name,
                                     column.shape, !column.count().has_value());
  }
  Json signatures = Json::object();
  for (const auto& [name, output] : signature.signatures) {
    signatures[name] = {{"inputs", inputs},
                        {"outputs",
                         {{output, TensorJson("DT_FLOAT", output,
                                              {signature.outputs}, false)}}},
                        {"method_name", "tensorflow/serving/predict"}};
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
