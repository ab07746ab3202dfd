#include "cluster/collective/socket_endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "base/status_matchers.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/rank_hello.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

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
      SocketEndpoint::Start(
          "127.0.0.1", 0,
          {.protocol = {}, .shared_memory = false, .piece_lanes = false}));
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

// A planner whose name says a parameter.
class NamedPlanner : public AllReducePlanner {
 public:
  explicit NamedPlanner(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return OwnerSlicesPlanner()->AllReduce(reduction, rank);
  }

 private:
  const std::string name_;
};

TEST(SocketEndpointTest, RanksWithDifferentPlannersMakeNoGroup) {
  std::vector<std::unique_ptr<SocketEndpoint>> endpoints(2);
  CollectiveGroup group;
  group.epoch = 1;
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK_AND_ASSIGN(endpoints[rank],
                         SocketEndpoint::Start("127.0.0.1", 0, {}));
    group.ranks.push_back(
        {.address = absl::StrCat("127.0.0.1:", endpoints[rank]->port()),
         .replicas = {rank}});
  }
  absl::Status first;
  std::thread rank_0([&, group]() mutable {
    group.planner = std::make_shared<NamedPlanner>("tree(width=2)");
    first = endpoints[0]->Join(group, absl::Seconds(30)).status();
  });
  group.own_rank = 1;
  group.planner = std::make_shared<NamedPlanner>("tree(width=3)");
  EXPECT_THAT(endpoints[1]->Join(group, absl::Seconds(30)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("rank 0 (127.0.0.1:")));
  endpoints[0]->CancelJoin(1);
  rank_0.join();
  EXPECT_THAT(first, StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace parasol
