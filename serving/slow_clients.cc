#include "serving/slow_clients.h"

#include <netdb.h>
#include <sys/socket.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

// A late client is found out within this time.
constexpr absl::Duration kInterval = absl::Milliseconds(500);

using GetName = int (*)(int, sockaddr*, socklen_t*);

// Returns an end of the socket `fd` as "host port"; nullopt if it is no TCP
// socket.
std::optional<std::string> EndOf(int fd, GetName get_name) {
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
  return absl::StrCat(host, " ", port);
}

// The two ends of a connection as one text: the peer, and the port here.
std::string EndsOf(const SlowClients::Connection& connection) {
  return absl::StrCat(connection.peer, " ", connection.peer_port, " ",
                      connection.local_port);
}

std::optional<std::string> EndsOf(int fd) {
  const std::optional<std::string> peer = EndOf(fd, getpeername);
  if (!peer.has_value()) return std::nullopt;
  const std::optional<std::string> local = EndOf(fd, getsockname);
  if (!local.has_value()) return std::nullopt;
  return absl::StrCat(*peer, " ", local->substr(local->rfind(' ') + 1));
}

// The process's connections over TCP: descriptors by their ends.
std::multimap<std::string, int> OwnSockets() {
  std::multimap<std::string, int> sockets;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    int fd = -1;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &fd)) continue;
    std::optional<std::string> ends = EndsOf(fd);
    if (ends.has_value()) sockets.emplace(*std::move(ends), fd);
  }
  return sockets;
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
  place_ = clients_.watched_.emplace(
      end, Watched{.connection = std::move(connection)});
}

SlowClients::Watch::~Watch() {
  absl::MutexLock lock(&clients_.mu_);
  clients_.watched_.erase(place_);
}

void SlowClients::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(mu_, absl::Condition(&is_stopping_),
                                  kInterval)) {
        return;
      }
      if (!HasLate()) continue;
    }
    const std::multimap<std::string, int> sockets = OwnSockets();
    absl::MutexLock lock(&mu_);
    ShutDownLate(sockets);
  }
}

bool SlowClients::HasLate() {
  const absl::Time now = clock_.Now();
  for (const auto& [end, watched] : watched_) {
    if (end > now) break;
    if (!watched.is_shut) return true;
  }
  return false;
}

void SlowClients::ShutDownLate(const std::multimap<std::string, int>& sockets) {
  const absl::Time now = clock_.Now();
  for (auto& [end, watched] : watched_) {
    if (end > now) break;
    if (watched.is_shut) continue;
    const std::string ends = EndsOf(watched.connection);
    const auto [first, last] = sockets.equal_range(ends);
    for (auto socket = first; socket != last; ++socket) {
      // The lock keeps the connection from being closed by its thread; before
      // it, the descriptor may have become another's.
      if (EndsOf(socket->second) != ends) continue;
      LOG_EVERY(WARNING, absl::Seconds(10))
          << "closing the connection of " << watched.connection.peer << ":"
          << watched.connection.peer_port
          << ": it does not send its request or take its answer in time";
      shutdown(socket->second, SHUT_RDWR);
      watched.is_shut = true;
    }
  }
}

}  // namespace parasol
