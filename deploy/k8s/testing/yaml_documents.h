#ifndef PARASOL_DEPLOY_K8S_TESTING_YAML_DOCUMENTS_H_
#define PARASOL_DEPLOY_K8S_TESTING_YAML_DOCUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace parasol {

// Returns the documents of a YAML text as JSON, as Kubernetes reads them: with
// anchors resolved. Documents of comments alone are left out.
//   InvalidArgument  no YAML, or a key that is twice in a map.
absl::StatusOr<std::vector<nlohmann::json>> YamlDocuments(
    const std::string& text);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_K8S_TESTING_YAML_DOCUMENTS_H_
