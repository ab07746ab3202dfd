#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// What TF_CONFIG says, key by key, before anyone asks whether the parts fit
// each other.
struct TfConfigJson {
  // From "cluster" or, where that is absent, "sparseCluster". Job "master" is
  // the chief.
  std::optional<ClusterSpec> cluster;
  std::optional<Role> type;
  std::string type_name;  // as it is written
  std::optional<int> index;
};

// Reads a TF_CONFIG that is not empty.
//   InvalidArgument  not a JSON object (with the position), or a value that its
//                    key can't have: names both.
absl::StatusOr<TfConfigJson> ReadTfConfigJson(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_JSON_H_
