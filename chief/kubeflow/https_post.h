#ifndef PARASOL_CHIEF_KUBEFLOW_HTTPS_POST_H_
#define PARASOL_CHIEF_KUBEFLOW_HTTPS_POST_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace parasol {

// Server that takes POSTs of JSON over HTTPS, and the files with which a client
// is let in. Both are read for each POST: they are replaced while a job runs.
struct HttpsServer {
  // Begins with "https://".
  std::string url;
  // Certificates (PEM) of which one must have signed the server's.
  std::string ca_file;
  // Holds a token, sent as "Authorization: Bearer".
  std::string token_file;
};

// Largest token file that is read.
inline constexpr size_t kMaxTokenBytes = 16 << 10;

// Checks what can be checked without the server.
//   InvalidArgument  the URL is not "https://…", or a file has no name.
absl::Status CheckHttpsServer(const HttpsServer& server);

// Posts `body` and returns OK if the server answers with a code from 200 to
// 299. Takes `timeout` at most, and returns within a second once `cancelled` is
// true. The token is in no message.
//   InvalidArgument     the URL, or what is in the token file, is of no use.
//   PermissionDenied    the server refused the token: 401 or 403.
//   FailedPrecondition  the server answered with another code.
//   Unavailable         no answer, or a file could not be read, or the server's
//                       certificate is not of the CA.
//   Cancelled           `cancelled` was true first.
absl::Status PostJson(const HttpsServer& server, const std::string& body,
                      absl::Duration timeout,
                      const std::atomic<bool>& cancelled);

}  // namespace parasol

#endif  // PARASOL_CHIEF_KUBEFLOW_HTTPS_POST_H_
