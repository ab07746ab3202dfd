#ifndef PARASOL_DEPLOY_K8S_TESTING_RENDERED_MANIFESTS_H_
#define PARASOL_DEPLOY_K8S_TESTING_RENDERED_MANIFESTS_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace parasol {

// Returns true if kubectl is here, which renders without a cluster.
bool HasKubectl();

// Returns what `kubectl apply -k deploy/k8s/OVERLAY` would send, as YAML. The
// files `more`, by their paths below deploy/k8s, are there, too.
//   InvalidArgument  kubectl's error.
absl::StatusOr<std::string> RenderedManifests(
    const std::string& overlay,
    const std::map<std::string, std::string>& more = {});

}  // namespace parasol

#endif  // PARASOL_DEPLOY_K8S_TESTING_RENDERED_MANIFESTS_H_
