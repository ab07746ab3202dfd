#include "tests/benchmark/tcp_contender.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "tests/benchmark/server_process.h"

namespace parasol {
namespace {

// Elements that are received and applied at once: 256 KiB.
constexpr size_t kPieceElements = 65536;
// A tensor below this size goes over one connection.
constexpr size_t kSplitElements = 65536;

// Elements [first, first + count) of a variable are pushed, pulled or both.
struct Request {
  uint32_t variable = 0;
  uint32_t push = 0;
  uint32_t pull = 0;
  uint32_t first = 0;
  uint32_t count = 0;
};

bool ReadAll(int fd, void* to, size_t size) {
  return recv(fd, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

void WriteAll(int fd, const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    CHECK_GT(n, 0);
    at += n;
    size -= n;
  }
}

void SetNoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void ReceiveAndApply(int fd, const Request& request, std::vector<float>& piece,
                     PlainVariables& variables) {
  for (size_t done = 0; done < request.count; done += kPieceElements) {
    const size_t n = std::min<size_t>(kPieceElements, request.count - done);
    CHECK(ReadAll(fd, piece.data(), n * sizeof(float)));
    variables.Apply(request.variable, request.first + done, n, piece.data());
  }
}

void ServeConnection(int fd, PlainVariables& variables) {
  SetNoDelay(fd);
  std::vector<float> piece(kPieceElements);
  Request request;
  while (ReadAll(fd, &request, sizeof(request))) {
    if (request.push != 0) ReceiveAndApply(fd, request, piece, variables);
    if (request.pull != 0) {
      WriteAll(fd, variables.values(request.variable).data() + request.first,
               request.count * sizeof(float));
    } else {
      WriteAll(fd, &request.count, sizeof(request.count));
    }
  }
  close(fd);
}

// One connection and the thread that uses it.
class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address = Loopback(port);
    CHECK(connect(fd_, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) == 0);
    SetNoDelay(fd_);
    thread_ = std::thread([this] { Run(); });
  }

  ~Connection() {
    {
      absl::MutexLock lock(&mu_);
      closed_ = true;
    }
    thread_.join();
    close(fd_);
  }

  void Exchange(const Request& request, const float* gradient, float* values) {
    WriteAll(fd_, &request, sizeof(request));
    const size_t bytes = request.count * sizeof(float);
    if (request.push != 0) WriteAll(fd_, gradient, bytes);
    uint32_t done;
    CHECK(request.pull != 0 ? ReadAll(fd_, values, bytes)
                            : ReadAll(fd_, &done, sizeof(done)));
  }

  // The same on the connection's own thread; then Wait().
  void Start(const Request& request, const float* gradient, float* values) {
    absl::MutexLock lock(&mu_);
    task_ = {request, gradient, values};
  }
  void Wait() {
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return !task_.has_value();
    };
    absl::MutexLock lock(&mu_, absl::Condition(&idle));
  }

 private:
  struct Task {
    Request request;
    const float* gradient;
    float* values;
  };

  void Run() {
    const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return closed_ || task_.has_value();
    };
    absl::MutexLock lock(&mu_);
    while (true) {
      mu_.Await(absl::Condition(&due));
      if (closed_) return;
      const Task task = *task_;
      mu_.Unlock();
      Exchange(task.request, task.gradient, task.values);
      mu_.Lock();
      task_.reset();
    }
  }

  const int fd_;
  absl::Mutex mu_;
  std::optional<Task> task_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

class TcpContender : public Contender {
 public:
  TcpContender()
      : process_("tcp"), first_(process_.port()), second_(process_.port()) {}

  std::string name() const override { return "raw TCP"; }

  void Push(size_t variable, absl::Span<const float> gradient) override {
    Exchange(variable, gradient.size(), gradient.data(), nullptr);
  }
  void Pull(size_t variable, absl::Span<float> values) override {
    Exchange(variable, values.size(), nullptr, values.data());
  }
  void PushPull(size_t variable, absl::Span<const float> gradient,
                absl::Span<float> values) override {
    Exchange(variable, values.size(), gradient.data(), values.data());
  }

  size_t server_rss_bytes() const override { return process_.rss_bytes(); }

 private:
  void Exchange(uint32_t variable, uint32_t count, const float* gradient,
                float* values) {
    Request request = {.variable = variable,
                       .push = gradient != nullptr,
                       .pull = values != nullptr,
                       .first = 0,
                       .count = count};
    if (count < kSplitElements) {
      first_.Exchange(request, gradient, values);
      return;
    }
    Request second = request;
    request.count = second.first = count / 2;
    second.count = count - second.first;
    second_.Start(second, gradient == nullptr ? nullptr : gradient + count / 2,
                  values == nullptr ? nullptr : values + count / 2);
    first_.Exchange(request, gradient, values);
    second_.Wait();
  }

  ServerProcess process_;
  Connection first_;
  Connection second_;
};

}  // namespace

std::unique_ptr<Contender> MakeTcpContender() {
  return std::make_unique<TcpContender>();
}

void ServeTcp() {
  static PlainVariables variables;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(listen(listener, 2) == 0);
  CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) ==
        0);
  std::thread accepting([listener] {
    while (true) {
      const int fd = accept(listener, nullptr, nullptr);
      if (fd >= 0)
        std::thread([fd] { ServeConnection(fd, variables); }).detach();
    }
  });
  ServeUntilKilled(ntohs(address.sin_port));
}

}  // namespace parasol
