#include "serving/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"
#include "serving/content_encoding.h"
#include "serving/json_answer.h"
#include "serving/slow_clients.h"

namespace parasol {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kMaxRefusalBytes = 100;
constexpr int kLeastHttpThreads = 4;
// Threads that a process with an HTTP server starts later.
constexpr int kOtherThreads = 24;

absl::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Error";
  }
}

// Returns how many threads of `wanted` a server may have: the system may allow
// fewer, and others are to start some, too.
int AllowedThreads(int wanted) {
  int threads = wanted;
  while (threads > kLeastHttpThreads &&
         !CheckThreadsAllowed(threads + kOtherThreads).ok()) {
    threads = std::max(threads / 2, kLeastHttpThreads);
  }
  if (threads < wanted) {
    LOG(WARNING) << "HTTP has " << threads << " threads in place of " << wanted
                 << ", as no more can be started: for more requests at a time "
                    "raise the limit of processes and threads (ulimit -u)";
  }
  return threads;
}

HttpResponse Refusal(int status, absl::string_view message) {
  HttpResponse response = {.status = status};
  response.body = ErrorJson(message);
  return response;
}

// Returns the response's bytes; without its body for HEAD.
std::string BytesOf(const HttpResponse& response, bool closes, bool has_body) {
  std::string bytes = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", ReasonOf(response.status),
      "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(), "\r\n",
      closes ? "Connection: close\r\n" : "Connection: keep-alive\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  }
  absl::StrAppend(&bytes, "\r\n", has_body ? response.body : "");
  return bytes;
}

SlowClients::Connection ConnectionOf(const mg_request_info& info) {
  return {.peer = info.remote_addr,
          .peer_port = info.remote_port,
          .local_port = info.server_port};
}

// Returns the decoded path; none if the request asks for something that is not
// of this server ("OPTIONS *", another host's URL).
std::string PathOf(const mg_request_info& info) {
  return info.local_uri == nullptr ? "" : info.local_uri;
}

// Connects to a port of this machine and leaves.
void Knock(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  close(fd);
}

class CivetServer final : public HttpServer {
 public:
  CivetServer(const Options& options, Handler handler, Clock& clock)
      : options_(options),
        handler_(std::move(handler)),
        clock_(clock),
        slow_clients_(clock) {}
  ~CivetServer() override { Stop(absl::ZeroDuration()); }

  absl::Status Listen();
  int port() const override { return port_; }
  void Stop(absl::Duration grace) override;

 private:
  // The body of a request, or the refusal of one.
  struct Received {
    std::string body = {};
    std::optional<HttpResponse> refusal = {};
  };

  int Answer(mg_connection* connection);
  Received Receive(mg_connection* connection, const mg_request_info& info);
  Received ReadBody(mg_connection* connection, int64_t length);
  // Unpacks a body that has a Content-Encoding.
  void Unpack(mg_connection* connection, Received& received);
  bool Reserve(int64_t bytes);
  void Release(int64_t bytes) { buffered_ -= bytes; }
  bool Enter();
  void Leave();

  const Options options_;
  const Handler handler_;
  Clock& clock_;
  mg_context* context_ = nullptr;
  int threads_ = 0;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int64_t> buffered_ = 0;
  SlowClients slow_clients_;

  absl::Mutex mu_;
  int in_progress_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_leaving_ ABSL_GUARDED_BY(mu_) = false;
};

CivetServer& ServerOf(const mg_connection* connection) {
  return *static_cast<CivetServer*>(
      mg_get_user_data(mg_get_context(connection)));
}

absl::Status CivetServer::Listen() {
  mg_callbacks callbacks = {};
  callbacks.begin_request = [](mg_connection* connection) {
    return ServerOf(connection).Answer(connection);
  };
  callbacks.init_connection = [](const mg_connection* connection, void**) {
    ++ServerOf(connection).connections_;
    return 0;
  };
  callbacks.connection_closed = [](const mg_connection* connection) {
    --ServerOf(connection).connections_;
  };
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
  callbacks.log_access = [](const mg_connection*, const char*) { return 1; };
  // A request that is none: the parser's own words say why.
  callbacks.http_error = [](mg_connection* connection, int status,
                            const char* message) {
    mg_disable_connection_keep_alive(connection);
    const std::string bytes = BytesOf(
        Refusal(status, absl::string_view(message).substr(0, kMaxRefusalBytes)),
        /*closes=*/true, /*has_body=*/true);
    mg_write(connection, bytes.data(), bytes.size());
    return 0;
  };
  const std::string host =
      options_.host == "localhost" ? "127.0.0.1" : options_.host;
  const std::string address = absl::StrCat(host, ":", options_.port);
  threads_ = AllowedThreads(options_.threads);
  const std::string threads = absl::StrCat(threads_);
  const std::string timeout =
      absl::StrCat(absl::ToInt64Milliseconds(options_.client_timeout));
  const std::string idle =
      absl::StrCat(absl::ToInt64Milliseconds(options_.idle_timeout));
  const char* settings[] = {"listening_ports",
                            address.c_str(),
                            "num_threads",
                            threads.c_str(),
                            "request_timeout_ms",
                            timeout.c_str(),
                            "keep_alive_timeout_ms",
                            idle.c_str(),
                            "enable_keep_alive",
                            "yes",
                            "tcp_nodelay",
                            "1",
                            "listen_backlog",
                            "1024",
                            "connection_queue",
                            "1024",
                            nullptr};
  context_ = mg_start(&callbacks, this, settings);
  mg_server_port port = {};
  if (context_ == nullptr || mg_get_server_ports(context_, 1, &port) < 1) {
    RETURN_IF_ERROR(CheckThreadsAllowed(1)) << "HTTP";
    RETURN_IF_ERROR(CheckDescriptorsAreLeft(1)) << "HTTP";
    return absl::InvalidArgumentError(absl::StrCat(
        "can't listen on ", options_.host, ":", options_.port,
        ": the port is in use, or the host is no address of this machine"));
  }
  port_ = port.port;
  return absl::OkStatus();
}

bool CivetServer::Enter() {
  absl::MutexLock lock(&mu_);
  if (is_leaving_) return false;
  ++in_progress_;
  return true;
}

void CivetServer::Leave() {
  absl::MutexLock lock(&mu_);
  --in_progress_;
}

bool CivetServer::Reserve(int64_t bytes) {
  if (buffered_.fetch_add(bytes) + bytes <= options_.max_buffered_bytes) {
    return true;
  }
  Release(bytes);
  return false;
}

int CivetServer::Answer(mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  const bool entered = Enter();
  HttpResponse response;
  // A body that is not read leaves a connection that can't go on.
  bool closes = !entered || connections_ >= threads_;
  if (!entered) {
    response = Refusal(503, "the server is leaving; try another one");
  } else {
    Received received = Receive(connection, info);
    Unpack(connection, received);
    const auto reserved = static_cast<int64_t>(received.body.size());
    closes = closes || received.refusal.has_value();
    response = received.refusal.has_value()
                   ? *std::move(received.refusal)
                   : handler_({.method = info.request_method,
                               .path = PathOf(info),
                               .body = std::move(received.body)});
    Release(reserved);
  }
  if (closes) mg_disable_connection_keep_alive(connection);
  const std::string bytes =
      BytesOf(response, closes, std::strcmp(info.request_method, "HEAD") != 0);
  {
    const SlowClients::Watch watch(slow_clients_, ConnectionOf(info),
                                   options_.client_timeout);
    mg_write(connection, bytes.data(), bytes.size());
  }
  if (entered) Leave();
  return response.status;
}

CivetServer::Received CivetServer::Receive(mg_connection* connection,
                                           const mg_request_info& info) {
  const char* const coding = mg_get_header(connection, "Transfer-Encoding");
  const bool is_chunked = coding != nullptr;
  const int64_t length = is_chunked ? -1 : info.content_length;
  if (!is_chunked && length <= 0) return {};
  if (length > options_.max_body_bytes) {
    return {
        .refusal = Refusal(
            413, absl::StrCat("the body has ", length, " bytes, of at most ",
                              options_.max_body_bytes, " (--max_body_bytes)"))};
  }
  const char* const expects = mg_get_header(connection, "Expect");
  if (expects != nullptr && absl::EqualsIgnoreCase(expects, "100-continue")) {
    constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    mg_write(connection, kContinue.data(), kContinue.size());
  }
  const SlowClients::Watch watch(slow_clients_, ConnectionOf(info),
                                 options_.client_timeout);
  return ReadBody(connection, length);
}

CivetServer::Received CivetServer::ReadBody(mg_connection* connection,
                                            int64_t length) {
  Received received;
  std::string& body = received.body;
  int64_t filled = 0;
  while (length < 0 || filled < length) {
    const int64_t more =
        length < 0 ? static_cast<int64_t>(kReadBytes) : length - filled;
    const int64_t size = filled + std::min<int64_t>(more, kReadBytes);
    const auto grown = size - static_cast<int64_t>(body.size());
    if (!Reserve(grown)) {
      received.refusal =
          Refusal(503,
                  "overloaded: too many bytes of requests; try again "
                  "later");
      break;
    }
    body.resize(size);
    const int n = mg_read(connection, body.data() + filled, size - filled);
    if (n <= 0) {
      if (length >= 0 || n < 0) {
        received.refusal = Refusal(
            408, "the request's body did not come in time, or not whole");
      }
      break;
    }
    filled += n;
    if (filled > options_.max_body_bytes) {
      received.refusal = Refusal(
          413, absl::StrCat("the body has more than ", options_.max_body_bytes,
                            " bytes (--max_body_bytes)"));
      break;
    }
  }
  if (static_cast<int64_t>(body.size()) > filled) {
    Release(static_cast<int64_t>(body.size()) - filled);
    body.resize(filled);
  }
  return received;
}

void CivetServer::Unpack(mg_connection* connection, Received& received) {
  const char* const encoding = mg_get_header(connection, "Content-Encoding");
  if (encoding == nullptr || received.refusal.has_value() ||
      received.body.empty()) {
    return;
  }
  if (!Reserve(options_.max_body_bytes)) {
    received.refusal =
        Refusal(503, "overloaded: too many bytes of requests; try again later");
    return;
  }
  const auto packed = static_cast<int64_t>(received.body.size());
  absl::StatusOr<std::string> unpacked =
      Unpacked(encoding, std::move(received.body), options_.max_body_bytes);
  received.body = unpacked.ok() ? *std::move(unpacked) : "";
  Release(options_.max_body_bytes + packed -
          static_cast<int64_t>(received.body.size()));
  if (unpacked.ok()) return;
  const bool is_large = absl::IsOutOfRange(unpacked.status());
  received.refusal =
      Refusal(is_large                                   ? 413
              : absl::IsUnimplemented(unpacked.status()) ? 415
                                                         : 400,
              absl::StrCat(unpacked.status().message(),
                           is_large ? " (--max_body_bytes)" : ""));
  if (received.refusal->status == 415) {
    received.refusal->headers.emplace_back("Accept-Encoding",
                                           kContentEncodings);
  }
}

void CivetServer::Stop(absl::Duration grace) {
  if (context_ == nullptr) return;
  const auto is_idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return in_progress_ == 0;
  };
  {
    absl::MutexLock lock(&mu_);
    is_leaving_ = true;
    if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_idle), grace)) {
      LOG(WARNING) << in_progress_
                   << " requests are not answered: their time is over";
    }
  }
  // Civetweb looks every two seconds whether it is to stop, or when somebody
  // connects.
  absl::Mutex mu;
  bool stopped = false;
  std::thread stopper([this, &mu, &stopped] {
    mg_stop(context_);
    absl::MutexLock lock(&mu);
    stopped = true;
  });
  const auto has_stopped = [&mu, &stopped] {
    absl::MutexLock lock(&mu);
    return Clock::Real().AwaitWithTimeout(mu, absl::Condition(&stopped),
                                          absl::Milliseconds(20));
  };
  while (!has_stopped()) Knock(port_);
  stopper.join();
  context_ = nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const Options& options, Handler handler, Clock& clock) {
  auto server =
      std::make_unique<CivetServer>(options, std::move(handler), clock);
  const absl::Status listening = server->Listen();
  if (!listening.ok()) return listening;
  return server;
}

}  // namespace parasol
