#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVERS_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVERS_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ml/input/object/testing/gcs_server.h"
#include "ml/input/object/testing/object_server.h"
#include "ml/input/object/testing/s3_server.h"

namespace parasol {

// Starts a server of the kind "S3" or "Google".
inline std::unique_ptr<ObjectServer> StartObjectServer(absl::string_view kind,
                                                       absl::string_view name) {
  if (kind == "Google") return std::make_unique<GcsServer>(name);
  return std::make_unique<S3Server>(name);
}

// The kinds, and the names that tests have by them.
inline auto ObjectServerKinds() {
  return testing::Values(std::string("S3"), std::string("Google"));
}
inline std::string ObjectServerName(
    const testing::TestParamInfo<std::string>& info) {
  return info.param;
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_OBJECT_SERVERS_H_
