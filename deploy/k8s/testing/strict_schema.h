#ifndef PARASOL_DEPLOY_K8S_TESTING_STRICT_SCHEMA_H_
#define PARASOL_DEPLOY_K8S_TESTING_STRICT_SCHEMA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace parasol {

// Schemas of kinds of Kubernetes, as the API server checks with them
// `--validate=strict`: a field that a schema does not name is a fault.
class StrictSchemas {
 public:
  // Reads the files of a folder like deploy/k8s/schemas.
  explicit StrictSchemas(const std::string& folder);

  // Returns the faults of an object, each with its path; of one of an unknown
  // kind that it is unknown.
  std::vector<std::string> FaultsOf(const nlohmann::json& object) const;

  // Returns the faults of a value that has the schema of a part of a kind, for
  // example "/properties/spec" of "jobset.x-k8s.io/v1alpha2/JobSet".
  std::vector<std::string> FaultsOfPart(const nlohmann::json& value,
                                        const std::string& kind,
                                        const std::string& part) const;

 private:
  // Schemas by "apiVersion/kind".
  std::map<std::string, nlohmann::json> kinds_;
  // Schemas by the name that a "$ref" has.
  std::map<std::string, nlohmann::json> parts_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_K8S_TESTING_STRICT_SCHEMA_H_
