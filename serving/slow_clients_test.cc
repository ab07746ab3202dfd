#include "serving/slow_clients.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

// A connection over TCP within this process.
class Pair {
 public:
  Pair() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener, any, size), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, any, &size), 0);
    local_port_ = ntohs(address.sin_port);
    client_ = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client_, any, size), 0);
    server_ = accept(listener, any, &size);
    peer_port_ = ntohs(address.sin_port);
    close(listener);
  }
  ~Pair() {
    close(client_);
    close(server_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  SlowClients::Connection connection() const {
    return {.peer = "127.0.0.1",
            .peer_port = peer_port_,
            .local_port = local_port_};
  }

  // Returns true if the client sees the end of the connection within 20 ms.
  bool IsShut() const {
    pollfd ready = {.fd = client_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 20) != 1) return false;
    char byte;
    return recv(client_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int client_ = -1;
  int server_ = -1;
  int peer_port_ = 0;
  int local_port_ = 0;
};

TEST(SlowClientsTest, LateConnectionsAloneAreShutDown) {
  SimulatedClock clock;
  SlowClients clients(clock);
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back(std::make_unique<Pair>());
  std::vector<std::unique_ptr<SlowClients::Watch>> watches;
  for (int i = 0; i < 20; ++i) {
    watches.push_back(std::make_unique<SlowClients::Watch>(
        clients, pairs[i]->connection(),
        i < 10 ? absl::Seconds(5) : absl::Hours(1000)));
  }
  const Pair unwatched;
  EXPECT_FALSE(pairs[0]->IsShut());
  clock.Advance(absl::Seconds(5));
  for (int i = 0; i < 10; ++i) {
    // The thread may have begun to wait behind the last advance.
    int tries = 0;
    while (!pairs[i]->IsShut() && ++tries < 1000) {
      clock.Advance(absl::Seconds(1));
    }
    EXPECT_LT(tries, 1000);
  }
  for (int i = 10; i < 20; ++i) EXPECT_FALSE(pairs[i]->IsShut());
  EXPECT_FALSE(unwatched.IsShut());
}

TEST(SlowClientsTest, AConnectionThatIsNoLongerWatchedStays) {
  SimulatedClock clock;
  SlowClients clients(clock);
  const Pair quick;
  const Pair late;
  const SlowClients::Watch watch(clients, late.connection(), absl::Seconds(5));
  { SlowClients::Watch done(clients, quick.connection(), absl::Seconds(1)); }
  int tries = 0;
  while (!late.IsShut() && ++tries < 1000) clock.Advance(absl::Seconds(1));
  EXPECT_LT(tries, 1000);
  EXPECT_FALSE(quick.IsShut());
}

}  // namespace
}  // namespace parasol
