#include "deploy/k8s/testing/rendered_manifests.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

constexpr char kFolder[] = "deploy/k8s";

}  // namespace

bool HasKubectl() {
  return access("/usr/bin/kubectl", X_OK) == 0 ||
         access("/usr/local/bin/kubectl", X_OK) == 0;
}

absl::StatusOr<std::string> RenderedManifests(
    const std::string& overlay,
    const std::map<std::string, std::string>& more) {
  // bazel's runfiles are links, which kustomize refuses to follow.
  const std::string copy = testing::TempDir() + "/k8s";
  std::filesystem::remove_all(copy);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(kFolder)) {
    const std::filesystem::path target =
        copy / entry.path().lexically_relative(kFolder);
    if (entry.is_directory()) {
      std::filesystem::create_directories(target);
    } else {
      std::filesystem::create_directories(target.parent_path());
      std::filesystem::copy(entry.path(), target);
    }
  }
  for (const auto& [path, text] : more) {
    const std::filesystem::path target = std::filesystem::path(copy) / path;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target) << text;
  }
  ASSIGN_OR_RETURN(const CompletedProcess rendered,
                   RunSubprocess({.argv = {"/usr/bin/env", "kubectl",
                                           "kustomize", copy + "/" + overlay}},
                                 absl::Seconds(60)));
  if (rendered.end.code() != 0) {
    return absl::InvalidArgumentError(rendered.standard_error);
  }
  return rendered.standard_output;
}

}  // namespace parasol
