#include "tests/cluster/cutting_relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  CHECK_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

Descriptor NewSocket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(made.is_open());
  return made;
}

void SetNonBlocking(const Descriptor& socket) {
  CHECK_EQ(fcntl(socket.get(), F_SETFL, O_NONBLOCK), 0);
}

}  // namespace

std::unique_ptr<CuttingRelay> CuttingRelay::Start(
    const std::string& host, const std::string& target_host, int port,
    std::function<Plan(size_t)> plan) {
  Descriptor listening = NewSocket();
  const int on = 1;
  CHECK_EQ(
      setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)),
      0);
  const sockaddr_in address = AddressOf(host, port);
  if (bind(listening.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(listening.get(), 16) != 0) {
    CHECK_EQ(errno, EADDRINUSE) << host << ":" << port;
    return nullptr;
  }
  return std::unique_ptr<CuttingRelay>(new CuttingRelay(
      std::move(listening), target_host, port, std::move(plan)));
}

CuttingRelay::CuttingRelay(Descriptor listening, const std::string& target_host,
                           int port, std::function<Plan(size_t)> plan)
    : target_host_(target_host),
      port_(port),
      plan_(std::move(plan)),
      listening_(std::move(listening)),
      wake_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { Run(); });
}

CuttingRelay::~CuttingRelay() {
  stopping_ = true;
  CHECK_EQ(eventfd_write(wake_.get(), 1), 0);
  thread_.join();
}

void CuttingRelay::ResetAll() {
  resets_all_ = true;
  CHECK_EQ(eventfd_write(wake_.get(), 1), 0);
}

void CuttingRelay::Run() {
  while (!stopping_) {
    std::vector<pollfd> polled = {{listening_.get(), POLLIN, 0},
                                  {wake_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      for (size_t end = 0; end < 2; ++end) {
        const Direction& in = connection.directions[end];
        const Direction& out = connection.directions[1 - end];
        short events = 0;
        if (!in.has_ended && in.kept.empty()) events |= POLLIN;
        if (!out.kept.empty()) events |= POLLOUT;
        // A negative descriptor is passed over: a broken one would wake always.
        polled.push_back(
            {events == 0 ? -1 : connection.ends[end].get(), events, 0});
      }
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    if (polled[1].revents != 0) {
      eventfd_t wakes = 0;
      eventfd_read(wake_.get(), &wakes);
    }
    if (resets_all_.exchange(false)) {
      for (Connection& connection : connections_) Reset(connection);
      cuts_ += connections_.size();
      connections_.clear();
    }
    connections_.remove_if(
        [this](Connection& connection) { return !Serve(connection); });
    if (polled[0].revents != 0) Accept();
  }
}

void CuttingRelay::Accept() {
  Connection connection;
  connection.ends[0] =
      Descriptor(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection.ends[0].is_open()) return;
  connection.ends[1] = NewSocket();
  const sockaddr_in address = AddressOf(target_host_, port_);
  if (connect(connection.ends[1].get(),
              reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return;
  }
  for (const Descriptor& end : connection.ends) SetNonBlocking(end);
  connection.plan = plan_(accepted_++);
  connections_.push_back(std::move(connection));
}

bool CuttingRelay::Serve(Connection& connection) {
  return PassOn(connection, 0) && PassOn(connection, 1);
}

bool CuttingRelay::PassOn(Connection& connection, size_t from) {
  Direction& direction = connection.directions[from];
  if (direction.has_ended) return true;
  const bool is_cut_here = (from == 0) == connection.plan.to_target;
  if (direction.kept.empty()) {
    direction.kept.resize(connection.plan.piece_bytes);
    const ssize_t received =
        recv(connection.ends[from].get(), direction.kept.data(),
             direction.kept.size(), 0);
    direction.kept.resize(std::max<ssize_t>(received, 0));
    if (received < 0) return errno == EAGAIN || errno == EINTR;
    if (received == 0) return false;
  }
  size_t due = direction.kept.size();
  if (is_cut_here) {
    due = std::min(due, connection.plan.bytes - direction.passed_on);
  }
  const ssize_t sent = due == 0
                           ? 0
                           : send(connection.ends[1 - from].get(),
                                  direction.kept.data(), due, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  direction.kept.erase(direction.kept.begin(), direction.kept.begin() + sent);
  direction.passed_on += sent;
  if (is_cut_here && direction.passed_on == connection.plan.bytes) {
    return DoCut(connection);
  }
  return true;
}

bool CuttingRelay::DoCut(Connection& connection) {
  ++cuts_;
  if (connection.plan.at_cut != nullptr) connection.plan.at_cut();
  switch (connection.plan.cut) {
    case Cut::kNone:
      connection.plan.bytes = SIZE_MAX;
      return true;
    case Cut::kReset:
      Reset(connection);
      return false;
    case Cut::kClose:
      return false;
    case Cut::kHalf:
      break;
  }
  Direction& direction =
      connection.directions[connection.plan.to_target ? 0 : 1];
  direction.has_ended = true;
  direction.kept.clear();
  shutdown(connection.ends[connection.plan.to_target ? 1 : 0].get(), SHUT_WR);
  return true;
}

void CuttingRelay::Reset(Connection& connection) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  for (const Descriptor& end : connection.ends) {
    CHECK_EQ(
        setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
        0);
  }
}

}  // namespace parasol
