#include "deploy/tool/serving/slow_clients.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/log.h"

namespace parasol {
namespace {

// A late client is found out within this time.
constexpr absl::Duration kInterval = absl::Milliseconds(500);

struct Address {
  std::string host;
  int port = 0;
};

using GetName = int (*)(int, sockaddr*, socklen_t*);

// Returns an end of the socket `fd`; nullopt if it is no TCP socket.
std::optional<Address> EndOf(int fd, GetName get_name) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (get_name(fd, any, &size) != 0) return std::nullopt;
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(any, size, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return std::nullopt;
  }
  return Address{host, std::atoi(port)};
}

}  // namespace

SlowClients::SlowClients(Clock& clock)
    : clock_(clock), thread_([this] { Run(); }) {}

SlowClients::~SlowClients() {
  {
    absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  thread_.join();
}

SlowClients::Watch::Watch(SlowClients& clients, Connection connection,
                          absl::Duration limit)
    : clients_(clients) {
  const absl::Time end = clients_.clock_.Now() + limit;
  absl::MutexLock lock(&clients_.mu_);
  place_ = clients_.watched_.emplace(end, std::move(connection));
}

SlowClients::Watch::~Watch() {
  absl::MutexLock lock(&clients_.mu_);
  clients_.watched_.erase(place_);
}

void SlowClients::Run() {
  absl::MutexLock lock(&mu_);
  while (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_stopping_),
                                  kInterval)) {
    // The lock keeps the connections from being closed by their threads, and
    // their descriptors from being used again.
    const absl::Time now = clock_.Now();
    for (const auto& [end, connection] : watched_) {
      if (end > now) break;
      ShutDown(connection);
    }
  }
}

void SlowClients::ShutDown(const Connection& connection) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &fd)) continue;
    const std::optional<Address> peer = EndOf(fd, getpeername);
    if (!peer.has_value() || peer->port != connection.peer_port ||
        peer->host != connection.peer) {
      continue;
    }
    const std::optional<Address> local = EndOf(fd, getsockname);
    if (!local.has_value() || local->port != connection.local_port) continue;
    LOG_EVERY(WARNING, absl::Seconds(10))
        << "closing the connection of " << connection.peer << ":"
        << connection.peer_port
        << ": it does not send its request or take its answer in time";
    shutdown(fd, SHUT_RDWR);
  }
}

}  // namespace parasol
