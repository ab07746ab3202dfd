#ifndef PARASOL_SERVING_HTTP_SERVER_H_
#define PARASOL_SERVING_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "serving/http_message.h"

namespace parasol {

// An HTTP/1.1 server whose connections stay open between requests. Each
// connection in use has one of the server's threads; while all threads are in
// use, connections are closed behind an answer, so that waiting connections
// have their turn. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string host = "0.0.0.0";  // an address of this machine
    int port = 0;                  // 0: the system chooses one
    int threads = 256;
    int64_t max_body_bytes = int64_t{8} << 20;
    // Bytes of bodies that all requests together may hold.
    int64_t max_buffered_bytes = int64_t{128} << 20;
    // Time within which a client must send a request's header, its body, and
    // take the answer.
    absl::Duration client_timeout = absl::Seconds(10);
    // Time for which a connection may be idle.
    absl::Duration idle_timeout = absl::Seconds(30);
  };

  // Function that answers a request, on one of the server's threads.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // Listens. `clock` must outlive the server.
  //   InvalidArgument  the address can't be listened on: names it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const Options& options, Handler handler, Clock& clock);
  virtual ~HttpServer() = default;

  virtual int port() const = 0;

  // Answers new requests with 503 from now on, waits until those in progress
  // are answered, for `grace` at most, and closes all connections. May be
  // called twice.
  virtual void Stop(absl::Duration grace) = 0;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_HTTP_SERVER_H_
