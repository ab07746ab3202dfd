#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// The values of TF_CONFIG, key by key. ReadTfConfigJson() does not check
// whether they fit each other.
struct TfConfigJson {
  // Value of "cluster" or, if that is absent, of "sparseCluster". Job "master"
  // is the chief.
  std::optional<ClusterSpec> cluster;
  std::optional<Role> type;
  std::string type_name;  // the spelling in TF_CONFIG
  std::optional<int> index;
};

// Reads a TF_CONFIG that is not empty.
//   InvalidArgument  not a JSON object (with the position), or a value that its
//                    key can't have; the message names both.
absl::StatusOr<TfConfigJson> ReadTfConfigJson(absl::string_view text);

// Reads a cluster's jobs alone: TF_CONFIG's "cluster", or an object that has it
// as member "cluster" and nothing beside it. Errors as above.
absl::StatusOr<ClusterSpec> ReadClusterJson(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_
