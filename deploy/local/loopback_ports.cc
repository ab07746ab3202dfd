#include "deploy/local/loopback_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

// Below Linux' default range of local ports (32768 to 60999).
constexpr int kFirstPort = 15000;
constexpr int kLastPort = 32000;

// A socket bound to the port, or -1.
int Bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

}  // namespace

absl::StatusOr<std::vector<int>> FreeLoopbackPorts(int count) {
  const int size = kLastPort - kFirstPort;
  const auto too_few = [count] {
    return absl::ResourceExhaustedError(
        absl::StrCat("127.0.0.1: no ", count, " free ports from ", kFirstPort,
                     " to ", kLastPort));
  };
  // Takes none: other processes would find all of them in use meanwhile.
  if (count > size) return too_few();
  std::vector<int> ports;
  // Held until all are found, so that no port is found twice.
  std::vector<int> sockets;
  const absl::Cleanup close_sockets = [&sockets] {
    for (const int fd : sockets) close(fd);
  };
  // From a random place on: two launchers that start together rarely meet.
  const int start = std::random_device()() % size;
  for (int i = 0; i < size && static_cast<int>(ports.size()) < count; ++i) {
    const int port = kFirstPort + (start + i) % size;
    const int fd = Bind(port);
    if (fd < 0) continue;
    sockets.push_back(fd);
    ports.push_back(port);
  }
  if (static_cast<int>(ports.size()) < count) return too_few();
  return ports;
}

}  // namespace parasol
