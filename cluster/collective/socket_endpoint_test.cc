#include "cluster/collective/socket_endpoint.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
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
#include "cluster/collective/rank_port.h"
#include "cluster/trust/mutual_proof.h"
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

std::string ReceiveAll(const Descriptor& socket, size_t bytes) {
  std::string received(bytes, '\0');
  EXPECT_EQ(recv(socket.get(), received.data(), bytes, MSG_WAITALL),
            static_cast<ssize_t>(bytes));
  return received;
}

void SendAll(const Descriptor& socket, const std::string& bytes) {
  EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

void SayAnswer(const Descriptor& socket, HelloAnswer answer) {
  SendAll(socket, std::string(1, static_cast<char>(answer)));
}

// Plays a rank with this secret that welcomes whoever proves anything: nobody,
// if the secret is another one. One byte of its proof is damaged, if one is
// named.
void Welcome(const Descriptor& socket, const std::string& secret,
             std::optional<size_t> damaged = std::nullopt) {
  const std::string hello = ReceiveAll(socket, RankHello::kBytes);
  const std::string nonce = DrawNonce();
  SayAnswer(socket, HelloAnswer::kChallenge);
  std::string said =
      nonce + ProofOf(secret, ProofSide::kAnswerer, hello, nonce);
  if (damaged) said[*damaged] ^= 1;
  SendAll(socket, said);
  std::string proof(kProofBytes, '\0');
  if (recv(socket.get(), proof.data(), proof.size(), MSG_WAITALL) > 0) {
    SayAnswer(socket, HelloAnswer::kWelcome);
  }
}

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
    for (const Descriptor& connection : connections) {
      Welcome(connection, group.secret);
    }
  });
  const auto joined = endpoint->Join(group, absl::Seconds(10));
  answers.join();
  EXPECT_OK(joined);
}

// A rank 0 that the test plays, and rank 1 that joins it.
class AnswersTest : public testing::Test {
 protected:
  AnswersTest()
      : endpoint_(
            SocketEndpoint::Start(
                "127.0.0.1", 0,
                {.protocol = {}, .shared_memory = false, .piece_lanes = false})
                .value()) {
    group_.epoch = 1;
    group_.own_rank = 1;
    group_.ranks = {{.address = rank_0_.address(), .replicas = {0}},
                    {.address = absl::StrCat("127.0.0.1:", endpoint_->port()),
                     .replicas = {1}}};
  }

  static constexpr char kChallenge = static_cast<char>(HelloAnswer::kChallenge);

  // Joins while one connection after the other gets one of `answers`: 0 closes
  // it without one, and who is challenged is welcome.
  absl::Status JoinWith(const std::vector<char>& answers) {
    std::vector<Descriptor> connections;
    std::thread rank_0([&] {
      for (const char answer : answers) {
        connections.push_back(rank_0_.Accept());
        if (answer == kChallenge) {
          Welcome(connections.back(), secret_,
                  std::exchange(damaged_, std::nullopt));
        } else if (answer != 0) {
          EXPECT_EQ(send(connections.back().get(), &answer, 1, MSG_NOSIGNAL),
                    1);
        } else {
          connections.pop_back();
        }
      }
    });
    const absl::Status joined =
        endpoint_->Join(group_, absl::Seconds(60)).status();
    rank_0.join();
    return joined;
  }

  const Listener rank_0_;
  const std::unique_ptr<SocketEndpoint> endpoint_;
  CollectiveGroup group_;
  std::string secret_;  // rank 0's
  // The byte of rank 0's next proof that is damaged.
  std::optional<size_t> damaged_;
};

TEST_F(AnswersTest, EachFlippedBitOfAnAnswerIsAskedForAgain) {
  std::vector<char> answers;
  for (int bit = 0; bit < 8; ++bit) {
    answers.push_back(static_cast<char>(kChallenge ^ 1 << bit));
  }
  answers.push_back(0);
  // Whoever has proven nothing welcomes nobody.
  answers.push_back(static_cast<char>(HelloAnswer::kWelcome));
  answers.push_back(kChallenge);
  EXPECT_OK(JoinWith(answers));
}

TEST_F(AnswersTest, ARankWithAnotherSecretIsNotJoined) {
  secret_ = "another";
  EXPECT_THAT(JoinWith({kChallenge, kChallenge}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("it has another secret")));
}

TEST_F(AnswersTest, AProofThatWasDamagedOnItsWayIsAskedForAgain) {
  for (const size_t damaged : {0, 20, 47}) {
    SCOPED_TRACE(damaged);
    damaged_ = damaged;
    EXPECT_OK(JoinWith({kChallenge, kChallenge}));
    EXPECT_EQ(damaged_, std::nullopt);
    ++group_.epoch;
  }
}

// As it does whose proof was damaged on its way.
TEST_F(AnswersTest, ARefusalIsAskedForTwice) {
  constexpr char kRefused = static_cast<char>(HelloAnswer::kRefused);
  EXPECT_OK(JoinWith({kRefused, kChallenge}));
  ++group_.epoch;
  EXPECT_THAT(JoinWith({kRefused, kRefused}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("refuses this rank")));
}

TEST_F(AnswersTest, AnotherVersionIsNamed) {
  EXPECT_THAT(
      JoinWith({static_cast<char>(HelloAnswer::kOtherVersion)}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("rank 0 (" + rank_0_.address() +
                         "): speaks another version of the protocol between "
                         "workers: all workers must be of one build")));
}

// What a rank's port answers to the first bytes of a connection.
class HelloTest : public testing::Test {
 protected:
  static constexpr char kChallenge = static_cast<char>(HelloAnswer::kChallenge);

  HelloTest() : port_(RankPort::Start("127.0.0.1", 0).value()) {
    CollectiveGroup group;
    group.epoch = 5;
    group.secret = "secret";
    group.ranks = {{.address = "a:1", .replicas = {0}},
                   {.address = "b:2", .replicas = {1}}};
    port_->Expect(group);
    group.own_rank = 1;
    hello_ = RankHello::Of(group, 0).Encode();
  }

  Descriptor Connect() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof(address)),
             0);
    return socket;
  }

  // Says the hello and, to the challenge, the proof of somebody with a secret.
  // Returns the last answer.
  char AnswerToProof(const std::string& secret, ProofSide side) const {
    const Descriptor socket = Connect();
    SendAll(socket, hello_);
    EXPECT_EQ(ReceiveAll(socket, 1), std::string(1, kChallenge));
    const std::string challenge =
        ReceiveAll(socket, RankHello::kChallengeBytes);
    const std::string nonce = challenge.substr(0, kNonceBytes);
    EXPECT_TRUE(IsProof(challenge.substr(kNonceBytes), "secret",
                        ProofSide::kAnswerer, hello_, nonce));
    SendAll(socket, ProofOf(secret, side, hello_, nonce));
    return ReceiveAll(socket, 1)[0];
  }

  // Returns the answer to the bytes; 0: the connection was closed without one.
  char AnswerTo(const std::string& bytes, bool is_all = false) const {
    const Descriptor socket = Connect();
    CHECK_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
             static_cast<ssize_t>(bytes.size()));
    if (is_all) shutdown(socket.get(), SHUT_WR);
    char answer = 0;
    return recv(socket.get(), &answer, 1, 0) == 1 ? answer : 0;
  }

  const std::unique_ptr<RankPort> port_;
  std::string hello_;
};

TEST_F(HelloTest, EachFlippedBitIsAHelloThatIsSaidAgain) {
  EXPECT_EQ(AnswerTo(hello_), kChallenge);
  for (size_t bit = 0; bit < 8 * hello_.size(); ++bit) {
    SCOPED_TRACE(bit);
    std::string damaged = hello_;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    const char answer = AnswerTo(damaged);
    // The digit of the version has no checksum: versions before had none.
    const bool is_version = bit / 8 == 7;
    EXPECT_EQ(answer,
              is_version ? static_cast<char>(HelloAnswer::kOtherVersion) : 0);
  }
  EXPECT_EQ(AnswerTo(hello_), kChallenge);
}

TEST_F(HelloTest, AHelloThatIsCutAnywhereIsNone) {
  for (size_t bytes = 0; bytes < hello_.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    EXPECT_EQ(AnswerTo(hello_.substr(0, bytes), /*is_all=*/true), 0);
  }
}

TEST_F(HelloTest, OnlyWhoHasTheSecretIsWelcome) {
  EXPECT_EQ(AnswerToProof("secret", ProofSide::kOpener),
            static_cast<char>(HelloAnswer::kWelcome));
  EXPECT_EQ(port_->TakeConnected().size(), 1);
  EXPECT_EQ(AnswerToProof("another", ProofSide::kOpener),
            static_cast<char>(HelloAnswer::kRefused));
  // The port's own proof, sent back.
  EXPECT_EQ(AnswerToProof("secret", ProofSide::kAnswerer),
            static_cast<char>(HelloAnswer::kRefused));
  EXPECT_EQ(port_->TakeConnected().size(), 0);
}

TEST_F(HelloTest, OtherVersionsAreToldSo) {
  EXPECT_EQ(AnswerTo("PCLrank1" + hello_.substr(8)),
            static_cast<char>(HelloAnswer::kOtherVersion));
  EXPECT_EQ(AnswerTo("PCLrank4"),
            static_cast<char>(HelloAnswer::kOtherVersion));
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
