#ifndef PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_
#define PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ml/input/web/testing/failing_server.h"

namespace parasol {

// A web server of this machine (web_server.py), whose files lie in a folder of
// the test's, and which fails as it is told. Ends with this object.
class WebServer : public FailingServer {
 public:
  // Starts it. With a `certificate`'s name, as "IP:127.0.0.1", it speaks TLS.
  explicit WebServer(absl::string_view name, std::string certificate = "")
      : FailingServer("ml/input/web/testing/web_server.py", name, "files",
                      Arguments(certificate)),
        is_secure_(!certificate.empty()) {
    setenv("no_proxy", "127.0.0.1", 1);
  }

  // Returns the URL of a file, or of a folder, "d".
  std::string Url(absl::string_view path) const {
    return absl::StrCat(is_secure_ ? "https" : "http", "://127.0.0.1:", port(),
                        "/", path);
  }
  // Returns the path of the authority's certificate.
  std::string Authority() const { return root() + "/authority.pem"; }

  // Makes a file, and returns its URL.
  std::string Put(absl::string_view path, absl::string_view bytes) const {
    Write(path, bytes);
    return Url(path);
  }

 private:
  static std::vector<std::string> Arguments(const std::string& certificate) {
    if (certificate.empty()) return {};
    return {certificate};
  }

  const bool is_secure_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_WEB_TESTING_WEB_SERVER_H_
