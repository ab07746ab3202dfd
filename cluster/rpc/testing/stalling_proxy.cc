#include "cluster/rpc/testing/stalling_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int NewSocket() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_GE(descriptor, 0);
  return descriptor;
}

}  // namespace

StallingProxy::StallingProxy(int target)
    : target_(target), listener_(NewSocket()), wake_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  CHECK_EQ(bind(listener_, generic, size), 0);
  CHECK_EQ(listen(listener_, 16), 0);
  CHECK_EQ(getsockname(listener_, generic, &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

StallingProxy::~StallingProxy() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  CHECK_EQ(eventfd_write(wake_, 1), 0);
  thread_.join();
  absl::MutexLock lock(&mu_);
  for (const Connection& connection : connections_) {
    close(connection.client);
    close(connection.server);
  }
  close(listener_);
  close(wake_);
}

std::string StallingProxy::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void StallingProxy::Stall() {
  {
    absl::MutexLock lock(&mu_);
    for (Connection& connection : connections_) connection.is_stalled = true;
  }
  CHECK_EQ(eventfd_write(wake_, 1), 0);
}

void StallingProxy::Run() {
  while (true) {
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) return;
      for (const Connection& connection : connections_) {
        const short events = connection.is_stalled ? 0 : POLLIN;
        // A negative descriptor is passed over.
        polled.push_back(
            {connection.is_stalled ? -1 : connection.client, events, 0});
        polled.push_back(
            {connection.is_stalled ? -1 : connection.server, events, 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) {
      eventfd_t wakes = 0;
      eventfd_read(wake_, &wakes);
    }
    {
      absl::MutexLock lock(&mu_);
      for (size_t i = 2; i < polled.size(); i += 2) {
        Connection& connection = connections_[i / 2 - 1];
        if (connection.is_stalled) continue;
        const int client = connection.client;
        const int server = connection.server;
        const bool goes_on =
            (polled[i].revents == 0 || Forward(client, server)) &&
            (polled[i + 1].revents == 0 || Forward(server, client));
        if (goes_on) continue;
        shutdown(client, SHUT_RDWR);
        shutdown(server, SHUT_RDWR);
        connection.is_stalled = true;
      }
    }
    if (polled[0].revents != 0) Accept();
  }
}

void StallingProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = NewSocket();
  const sockaddr_in address = Loopback(target_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    close(client);
    close(server);
    return;
  }
  absl::MutexLock lock(&mu_);
  connections_.push_back({.client = client, .server = server});
}

bool StallingProxy::Forward(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t received = recv(from, bytes.data(), bytes.size(), 0);
  if (received <= 0) return false;
  for (ssize_t sent = 0; sent < received;) {
    const ssize_t n =
        send(to, bytes.data() + sent, received - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += n;
  }
  return true;
}

}  // namespace parasol
