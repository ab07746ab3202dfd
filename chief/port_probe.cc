#include "chief/port_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "base/descriptor.h"

namespace parasol {
namespace {

// Waits for kProbeLimit at most. Returns true if something has come.
bool Await(const Descriptor& socket, short event) {
  pollfd waited = {.fd = socket.get(), .events = event, .revents = 0};
  const auto limit = static_cast<int>(absl::ToInt64Milliseconds(kProbeLimit));
  return poll(&waited, 1, limit) == 1;
}

// Returns true if the host refuses the connection, or ends it before anything
// comes, as a proxy does that is refused one. (A ps speaks first, or waits.)
bool IsRefused(const addrinfo& host) {
  const Descriptor socket(
      ::socket(host.ai_family, host.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
               host.ai_protocol));
  if (!socket.is_open()) return false;
  if (connect(socket.get(), host.ai_addr, host.ai_addrlen) != 0) {
    if (errno == ECONNREFUSED) return true;
    if (errno != EINPROGRESS || !Await(socket, POLLOUT)) return false;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == ECONNREFUSED || error == ECONNRESET) return true;
    if (error != 0) return false;
  }
  if (!Await(socket, POLLIN)) return false;
  char first;
  const ssize_t read = recv(socket.get(), &first, sizeof(first), 0);
  return read == 0 || (read < 0 && errno == ECONNRESET);
}

}  // namespace

bool IsNobodyAt(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = address.substr(0, colon);
  // An IPv6 address.
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints,
                  &found) != 0) {
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> hosts(found,
                                                                 &freeaddrinfo);
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    if (!IsRefused(*next)) return false;
  }
  return true;
}

}  // namespace parasol
