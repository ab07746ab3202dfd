#include "cluster/collective/socket_endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/status_matchers.h"
#include "cluster/collective/rank_hello.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// A port that takes one connection.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* const address = reinterpret_cast<sockaddr*>(&address_);
    CHECK_EQ(bind(socket_.get(), address, size), 0);
    CHECK_EQ(listen(socket_.get(), 1), 0);
    CHECK_EQ(getsockname(socket_.get(), address, &size), 0);
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", ntohs(address_.sin_port));
  }
  // Blocks until somebody has connected.
  Descriptor Accept() const {
    return Descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  const Descriptor socket_;
  sockaddr_in address_ = {};
};

TEST(SocketEndpointTest, ARankThatDoesNotAnswerHoldsUpNoCallOfAnother) {
  ASSERT_OK_AND_ASSIGN(
      auto endpoint,
      SocketEndpoint::Start("127.0.0.1", 0,
                            {.protocol = {}, .shared_memory = false}));
  std::vector<Listener> listeners(3);
  CollectiveGroup group;
  group.epoch = 1;
  group.own_rank = 3;
  for (const Listener& listener : listeners) {
    group.ranks.push_back({.address = listener.address(), .replicas = {}});
  }
  group.ranks.push_back(
      {.address = absl::StrCat("127.0.0.1:", endpoint->port()),
       .replicas = {0}});
  // They answer when all have been called.
  std::vector<Descriptor> connections;
  std::thread answers([&] {
    for (const Listener& listener : listeners) {
      connections.push_back(listener.Accept());
    }
    const char welcome = static_cast<char>(HelloAnswer::kWelcome);
    for (const Descriptor& connection : connections) {
      EXPECT_EQ(send(connection.get(), &welcome, 1, MSG_NOSIGNAL), 1);
    }
  });
  const auto joined = endpoint->Join(group, absl::Seconds(10));
  answers.join();
  EXPECT_OK(joined);
}

}  // namespace
}  // namespace parasol
