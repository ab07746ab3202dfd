#ifndef PARASOL_ML_INPUT_OBJECT_TESTING_GCS_SERVER_H_
#define PARASOL_ML_INPUT_OBJECT_TESTING_GCS_SERVER_H_

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ml/input/object/testing/object_server.h"

namespace parasol {

// A server of Google's protocol (gcs_server.py).
class GcsServer : public ObjectServer {
 public:
  // Starts it, and has this process, and those that it starts, find
  // credentials, for which it gives tokens.
  explicit GcsServer(absl::string_view name)
      : ObjectServer("gs", "gcs_server.py", name) {
    const std::string path = root() + "/credentials.json";
    std::ofstream(path) << R"({"type": "authorized_user", "client_id": "test",)"
                        << R"( "client_secret": "secret-of-the-test",)"
                        << R"( "refresh_token": "again", "token_uri": )"
                        << "\"http://127.0.0.1:" << port() << "/token\"}";
    setenv("GOOGLE_APPLICATION_CREDENTIALS", path.c_str(), 1);
  }

  std::string Options() const override {
    return absl::StrCat("scheme=http&endpoint_override=127.0.0.1:", port());
  }
  std::string Credentials() const override {
    return "write it (GOOGLE_APPLICATION_CREDENTIALS";
  }
  int Times(int times) const override { return std::min(times, 1); }
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_TESTING_GCS_SERVER_H_
