#include "cluster/payload_lane/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "cluster/payload_lane/pacing.h"

namespace parasol {
namespace {

constexpr int kBacklog = 256;

absl::Status CantListen(const std::string& what, const std::string& host,
                        int port, const char* why) {
  return absl::InvalidArgumentError(
      absl::StrCat("can't take ", what, " on ", host, ":", port, ": ", why));
}

absl::Status CantBind(const std::string& what, const std::string& host,
                      int port, int error) {
  if (error != EADDRINUSE) {
    return CantListen(what, host, port, std::strerror(error));
  }
  return CantListen(what, host, port,
                    "Address already in use; stop the process that has it, "
                    "such as another one of this task, or choose another port");
}

absl::StatusOr<Descriptor> Listen(const std::string& host, int port,
                                  const std::string& what) {
  std::string name(absl::StripSuffix(absl::StripPrefix(host, "["), "]"));
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return CantListen(what, host, port, gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  Descriptor socket(::socket(found->ai_family,
                             SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open())
    return CantListen(what, host, port, std::strerror(errno));
  AcceptWithoutPacing(socket.get());
  const int on = 1;
  const int off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (found->ai_family == AF_INET6) {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  if (bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    return CantBind(what, host, port, errno);
  }
  return socket;
}

}  // namespace

absl::StatusOr<Descriptor> ListenOn(const std::string& host, int port,
                                    const std::string& what) {
  // As RpcServer has it: "localhost" is two addresses.
  absl::StatusOr<Descriptor> socket =
      Listen(host == "localhost" ? "127.0.0.1" : host, port, what);
  // A machine may be without IPv6.
  if (!socket.ok() && host == "[::]") socket = Listen("0.0.0.0", port, what);
  return socket;
}

int PortOf(const Descriptor& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  CHECK(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address),
                    &size) == 0);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace parasol
