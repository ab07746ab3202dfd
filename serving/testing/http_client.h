#ifndef PARASOL_SERVING_TESTING_HTTP_CLIENT_H_
#define PARASOL_SERVING_TESTING_HTTP_CLIENT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

struct HttpAnswer {
  int status = 0;  // 0: the server has closed the connection, or said nothing
  std::string header = {};
  std::string body = {};
};

// A connection to an HTTP server on this machine, for tests: it can also send
// what no client sends. Not thread-safe.
class HttpClient {
 public:
  explicit HttpClient(int port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  HttpAnswer Get(absl::string_view path);
  HttpAnswer Post(absl::string_view path, absl::string_view body);

  // Sends bytes as they are. Returns false if the connection is closed.
  bool Send(absl::string_view bytes);
  // Reads one answer. Waits for each of its parts for ten seconds at most.
  HttpAnswer Receive();

 private:
  int fd_ = -1;
  std::string unread_;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_TESTING_HTTP_CLIENT_H_
