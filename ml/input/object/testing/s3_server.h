#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ml/input/object/testing/object_server.h"

namespace parasol {

// A server of S3's protocol (s3_server.py).
class S3Server : public ObjectServer {
 public:
  // Starts it, and has this process, and those that it starts, find
  // credentials that it takes.
  explicit S3Server(absl::string_view name)
      : ObjectServer("s3", "s3_server.py", name) {
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  }

  std::string Options() const override {
    return absl::StrCat("region=us-east-1&scheme=http&endpoint_override=",
                        "127.0.0.1:", port());
  }
  std::string Credentials() const override {
    return "write it (AWS_ACCESS_KEY_ID";
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_S3_SERVER_H_
