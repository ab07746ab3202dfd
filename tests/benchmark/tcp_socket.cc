#include "tests/benchmark/tcp_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/log.h"
#include "tests/benchmark/server_process.h"

namespace parasol {
namespace {

sockaddr_in AddressOf(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  const std::string host = ServerHost();
  CHECK_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1)
      << "--host=" << host << " is no IPv4 address";
  address.sin_port = htons(port);
  return address;
}

}  // namespace

TcpSocket::TcpSocket(int fd) : fd_(fd) {
  CHECK(fd >= 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

TcpSocket::~TcpSocket() { close(fd_); }

int TcpSocket::Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = AddressOf(port);
  CHECK(connect(fd, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0);
  return fd;
}

bool TcpSocket::ReadAll(void* to, size_t size) {
  return recv(fd_, to, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

void TcpSocket::WriteAll(const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t n = send(fd_, at, size, MSG_NOSIGNAL);
    CHECK(n > 0);
    at += n;
    size -= n;
  }
}

TcpListener::TcpListener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = AddressOf(0);
  socklen_t size = sizeof(address);
  CHECK(bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  CHECK(listen(fd_, 64) == 0);
  CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
}

int TcpListener::Accept() { return accept(fd_, nullptr, nullptr); }

}  // namespace parasol
