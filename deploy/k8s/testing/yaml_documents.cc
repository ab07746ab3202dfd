#include "deploy/k8s/testing/yaml_documents.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

nlohmann::json ScalarOf(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  // A quoted scalar.
  if (node.Tag() == "!") return text;
  if (text == "true" || text == "false") return text == "true";
  int64_t integer = 0;
  if (absl::SimpleAtoi(text, &integer)) return integer;
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return number;
  return text;
}

absl::StatusOr<nlohmann::json> JsonOf(const YAML::Node& node) {
  if (node.IsScalar()) return ScalarOf(node);
  if (node.IsSequence()) {
    nlohmann::json list = nlohmann::json::array();
    for (const YAML::Node& item : node) {
      ASSIGN_OR_RETURN(list.emplace_back(), JsonOf(item));
    }
    return list;
  }
  if (!node.IsMap()) return nlohmann::json();
  nlohmann::json object = nlohmann::json::object();
  for (const auto& entry : node) {
    const std::string& key = entry.first.Scalar();
    if (object.contains(key)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", entry.first.Mark().line + 1, ": ", key, " is there twice"));
    }
    ASSIGN_OR_RETURN(object[key], JsonOf(entry.second));
  }
  return object;
}

}  // namespace

absl::StatusOr<std::vector<nlohmann::json>> YamlDocuments(
    const std::string& text) {
  std::vector<YAML::Node> nodes;
  try {
    nodes = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
  std::vector<nlohmann::json> documents;
  for (const YAML::Node& node : nodes) {
    if (node.IsNull()) continue;
    ASSIGN_OR_RETURN(documents.emplace_back(), JsonOf(node));
  }
  return documents;
}

}  // namespace parasol
