#ifndef PARASOL_CHIEF_KUBEFLOW_TESTING_HTTPS_STUB_H_
#define PARASOL_CHIEF_KUBEFLOW_TESTING_HTTPS_STUB_H_

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace parasol {

// HTTPS server on 127.0.0.1 for tests, which answers one request after the
// other, each on its own connection, with what a function says. Its
// certificate is signed by itself.
class HttpsStub {
 public:
  struct Request {
    std::string path;
    std::string authorization;
    std::string body;
  };
  // Returns the answer's status line behind "HTTP/1.1 ", and further lines of
  // its head; nullopt: no answer, and the connection stays open.
  using Answer =
      std::function<std::optional<std::string>(const Request& request)>;

  // Writes the certificate to a file in `directory`.
  HttpsStub(const std::string& directory, Answer answer);
  ~HttpsStub();

  int port() const { return port_; }
  // Path of the certificate.
  const std::string& ca_file() const { return ca_file_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };

  void Run();
  void Serve(SSL* connection);

  const Answer answer_;
  const std::string ca_file_;
  std::unique_ptr<SSL_CTX, Free> context_;
  Descriptor listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_KUBEFLOW_TESTING_HTTPS_STUB_H_
