#include "deploy/k8s/testing/strict_schema.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "re2/re2.h"

namespace parasol {
namespace {

using Json = nlohmann::json;

constexpr char kJobSet[] = "jobset.x-k8s.io/v1alpha2/JobSet";
constexpr char kJobTemplate[] =
    "/properties/spec/properties/replicatedJobs/items/properties/template/"
    "properties/spec";

Json ReadJson(const std::string& path) {
  std::ifstream file(path);
  CHECK(file.good()) << path;
  return Json::parse(file);
}

// Returns the schema of a map of strings.
Json Strings() {
  return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
}

// Returns the schema of an object's metadata. CRDs leave it out.
Json Metadata() {
  return {
      {"type", "object"},
      {"properties",
       {{"name",
         {{"type", "string"}, {"pattern", "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}}},
        {"namespace", {{"type", "string"}}},
        {"labels", Strings()},
        {"annotations", Strings()}}}};
}

Json Selector() {
  const Json expression = {
      {"type", "object"},
      {"required", {"key", "operator"}},
      {"properties",
       {{"key", {{"type", "string"}}},
        {"operator",
         {{"type", "string"},
          {"enum", {"In", "NotIn", "Exists", "DoesNotExist"}}}},
        {"values", {{"type", "array"}, {"items", {{"type", "string"}}}}}}}};
  return {{"type", "object"},
          {"properties",
           {{"matchLabels", Strings()},
            {"matchExpressions", {{"type", "array"}, {"items", expression}}}}}};
}

bool HasType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "boolean" && value.is_boolean();
}

// Collects the faults of a value.
class Check {
 public:
  explicit Check(const std::map<std::string, Json>& parts) : parts_(parts) {}

  void Value(const Json& value, const Json& schema, const std::string& path) {
    if (schema.contains("$ref")) {
      return Value(value, parts_.at(schema["$ref"]), path);
    }
    if (schema.value("x-kubernetes-int-or-string", false)) {
      if (!value.is_number_integer() && !value.is_string()) {
        Fault(path, "neither an integer nor a string");
      }
      return;
    }
    const std::string type = schema.value("type", "");
    if (!type.empty() && !HasType(value, type)) {
      return Fault(path, absl::StrCat("not of type ", type));
    }
    Limits(value, schema, path);
    if (value.is_object()) Object(value, schema, path);
    if (value.is_array() && schema.contains("items")) {
      for (size_t i = 0; i < value.size(); ++i) {
        Value(value[i], schema["items"], absl::StrCat(path, "[", i, "]"));
      }
    }
  }

  std::vector<std::string> Take() { return std::move(faults_); }

 private:
  void Fault(const std::string& path, const std::string& fault) {
    faults_.push_back(absl::StrCat(path, ": ", fault));
  }

  void Object(const Json& value, const Json& schema, const std::string& path) {
    for (const auto& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        Fault(path, absl::StrCat("without ", name.get<std::string>()));
      }
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, item] : value.items()) {
      const std::string place = absl::StrCat(path, ".", name);
      if (properties.contains(name)) {
        Value(item, properties[name], place);
      } else if (schema.contains("additionalProperties")) {
        Value(item, schema["additionalProperties"], place);
      } else if (!schema.value("x-kubernetes-preserve-unknown-fields", false)) {
        Fault(place, "unknown field");
      }
    }
  }

  void Limits(const Json& value, const Json& schema, const std::string& path) {
    if (schema.contains("enum")) {
      const Json& known = schema["enum"];
      if (std::find(known.begin(), known.end(), value) == known.end()) {
        Fault(path, absl::StrCat(value.dump(), " is none of ", known.dump()));
      }
    }
    if (value.is_string()) {
      const std::string text = value;
      if (schema.contains("pattern") &&
          !RE2::PartialMatch(text, schema["pattern"].get<std::string>())) {
        Fault(path, absl::StrCat(text, " does not match the pattern"));
      }
      Size(text.size(), schema, "minLength", "maxLength", path);
    }
    if (value.is_array()) {
      Size(value.size(), schema, "minItems", "maxItems", path);
    }
    if (value.is_number()) {
      Size(value.get<double>(), schema, "minimum", "maximum", path);
    }
  }

  void Size(double size, const Json& schema, const std::string& least,
            const std::string& most, const std::string& path) {
    if (size < schema.value(least, size)) Fault(path, "below " + least);
    if (size > schema.value(most, size)) Fault(path, "above " + most);
  }

  const std::map<std::string, Json>& parts_;
  std::vector<std::string> faults_;
};

}  // namespace

StrictSchemas::StrictSchemas(const std::string& folder) {
  for (const char* file : {"clustertrainingruntime", "trainjob", "jobset"}) {
    const Json taken = ReadJson(absl::StrCat(folder, "/", file, ".json"));
    Json& schema = kinds_[absl::StrCat(taken["apiVersion"].get<std::string>(),
                                       "/", taken["kind"].get<std::string>())];
    schema = taken["schema"];
    schema["properties"]["metadata"] = Metadata();
  }
  const Json job =
      kinds_.at(kJobSet).at(nlohmann::json_pointer<std::string>(kJobTemplate));
  parts_ = {{"JobSpec", job},
            {"PodTemplate", job.at("properties").at("template")},
            {"Selector", Selector()}};
  const Json written = ReadJson(absl::StrCat(folder, "/kubernetes.json"));
  for (const auto& [kind, properties] : written.items()) {
    Json all = properties;
    all["apiVersion"] = all["kind"] = {{"type", "string"}};
    all["metadata"] = Metadata();
    kinds_[kind] = {{"type", "object"}, {"properties", std::move(all)}};
  }
}

std::vector<std::string> StrictSchemas::FaultsOf(const Json& object) const {
  const std::string kind = absl::StrCat(object.value("apiVersion", ""), "/",
                                        object.value("kind", ""));
  if (!kinds_.contains(kind)) return {absl::StrCat(kind, ": unknown kind")};
  return FaultsOfPart(object, kind, "");
}

std::vector<std::string> StrictSchemas::FaultsOfPart(
    const Json& value, const std::string& kind, const std::string& part) const {
  Check check(parts_);
  check.Value(value,
              kinds_.at(kind).at(nlohmann::json_pointer<std::string>(part)),
              kind.substr(kind.rfind('/') + 1));
  return check.Take();
}

}  // namespace parasol
