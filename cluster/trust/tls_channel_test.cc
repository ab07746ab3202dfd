#include "cluster/trust/tls_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr ExpectedPeer kPs = {PeerRole::kPs, 3};
constexpr ExpectedPeer kWorker = {PeerRole::kWorker, 1};

std::shared_ptr<const TlsContext> ContextOf(absl::string_view task,
                                            absl::string_view authority) {
  const CertificateDirectory directory("channel", authority);
  directory.Issue(task);
  const KeyMaterial material = directory.files().Read().value();
  return TlsContext::Make(material,
                          IdentityOf(material, Clock::Real().Now()).value())
      .value();
}

// A worker and a ps, as their certificates say, on a connection.
struct Pair {
  std::unique_ptr<TlsChannel> client;
  std::unique_ptr<TlsChannel> server;
};

Pair PairOn(Descriptor client, Descriptor server,
            absl::string_view worker = "mnist/worker/1",
            absl::string_view authority = "ours",
            int64_t records_per_key = TlsChannel::kRecordsPerKey) {
  return {std::make_unique<TlsChannel>(ContextOf(worker, authority),
                                       std::move(client), PeerSide::kClient,
                                       kPs, Clock::Real(), records_per_key),
          std::make_unique<TlsChannel>(
              ContextOf("mnist/ps/3", "ours"), std::move(server),
              PeerSide::kServer, kWorker, Clock::Real(), records_per_key)};
}

std::pair<Descriptor, Descriptor> SocketPair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void AwaitSocket(const TlsChannel& channel, bool sends) {
  pollfd polled = {channel.socket().get(), POLLIN, 0};
  // In the handshake a sender waits for the peer.
  if (sends && channel.has_peer()) polled.events |= POLLOUT;
  ASSERT_EQ(poll(&polled, 1, 20'000), 1);
}

// Sends pieces of the given sizes, over and over, until all is gone.
absl::Status SendAll(TlsChannel& channel, const std::string& text,
                     std::vector<size_t> sizes) {
  size_t begin = 0;
  while (begin < text.size() || channel.has_unsent()) {
    std::vector<iovec> pieces;
    size_t at = begin;
    for (const size_t size : sizes) {
      const size_t some = std::min(size, text.size() - at);
      pieces.push_back({const_cast<char*>(text.data()) + at, some});
      at += some;
    }
    const absl::StatusOr<size_t> sent = channel.Send(pieces);
    if (!sent.ok()) return sent.status();
    begin += *sent;
    if (*sent == 0) AwaitSocket(channel, /*sends=*/true);
  }
  return absl::OkStatus();
}

// Receives so many bytes, to pieces of `size`.
absl::StatusOr<std::string> ReceiveAll(TlsChannel& channel, size_t bytes,
                                       size_t size = 10'000) {
  std::string text(bytes, '\0');
  for (size_t at = 0; at < bytes;) {
    std::vector<iovec> pieces;
    for (size_t next = at; next < bytes && pieces.size() < 5; next += size) {
      pieces.push_back({text.data() + next, std::min(size, bytes - next)});
    }
    const absl::StatusOr<size_t> got = channel.Receive(pieces);
    if (!got.ok()) return got.status();
    at += *got;
    if (*got == 0) AwaitSocket(channel, /*sends=*/false);
  }
  return text;
}

std::string Text(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(i * 31 + i / 251);
  }
  return text;
}

TEST(TlsChannelTest, PiecesOfAllSizesArriveInOrderBothWays) {
  auto [left, right] = SocketPair();
  const Pair ends = PairOn(std::move(left), std::move(right));
  const std::string text = Text(3 << 20);
  const std::vector<std::vector<size_t>> all_sizes = {
      {text.size()}, {8, 100, 300'000, 0, 1}, {16'383, 16'384, 16'385}, {7}};
  for (const std::vector<size_t>& sizes : all_sizes) {
    for (const bool to_server : {true, false}) {
      TlsChannel& from = to_server ? *ends.client : *ends.server;
      TlsChannel& to = to_server ? *ends.server : *ends.client;
      const std::string some =
          sizes.size() == 1 && sizes[0] < 100 ? text.substr(0, 5'000) : text;
      std::thread sender([&] { EXPECT_OK(SendAll(from, some, sizes)); });
      const absl::StatusOr<std::string> got = ReceiveAll(to, some.size());
      sender.join();
      ASSERT_OK(got);
      EXPECT_TRUE(*got == some);
    }
  }
  EXPECT_TRUE(ends.client->has_peer());
  EXPECT_TRUE(ends.server->has_peer());
}

TEST(TlsChannelTest, BothEndsMaySendAndReceiveAtOnce) {
  auto [left, right] = SocketPair();
  const Pair ends = PairOn(std::move(left), std::move(right));
  const std::string text = Text(4 << 20);
  std::vector<std::thread> threads;
  for (TlsChannel* const end : {ends.client.get(), ends.server.get()}) {
    threads.emplace_back([&, end] {
      EXPECT_OK(SendAll(*end, text, {100, 200'000}));
    });
    threads.emplace_back([&, end] {
      const absl::StatusOr<std::string> got = ReceiveAll(*end, text.size());
      EXPECT_OK(got);
      EXPECT_TRUE(got.value_or("") == text);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TlsChannelTest, KeysAreChangedOnTheWay) {
  auto [left, right] = SocketPair();
  const Pair ends = PairOn(std::move(left), std::move(right), "mnist/worker/1",
                           "ours", /*records_per_key=*/3);
  const std::string text = Text(1 << 20);
  std::thread sender(
      [&] { EXPECT_OK(SendAll(*ends.client, text, {text.size()})); });
  const absl::StatusOr<std::string> got = ReceiveAll(*ends.server, text.size());
  sender.join();
  ASSERT_OK(got);
  EXPECT_TRUE(*got == text);
}

// A full socket: nothing is lost, and nothing blocks.
TEST(TlsChannelTest, WhatThereIsNoRoomForWaits) {
  auto [left, right] = SocketPair();
  const Pair ends = PairOn(std::move(left), std::move(right));
  const std::string text = Text(8 << 20);
  // The handshake.
  std::thread sender([&] { EXPECT_OK(SendAll(*ends.client, "a", {1})); });
  ASSERT_OK(ReceiveAll(*ends.server, 1));
  sender.join();
  size_t taken = 0;
  while (true) {
    const iovec rest = {const_cast<char*>(text.data()) + taken,
                        text.size() - taken};
    ASSERT_OK_AND_ASSIGN(const size_t some, ends.client->Send({&rest, 1}));
    if (some == 0) break;
    taken += some;
  }
  EXPECT_TRUE(ends.client->has_unsent());
  EXPECT_LT(taken, text.size());
  std::thread rest([&] { EXPECT_OK(SendAll(*ends.client, "", {})); });
  const absl::StatusOr<std::string> got = ReceiveAll(*ends.server, taken);
  rest.join();
  ASSERT_OK(got);
  EXPECT_TRUE(*got == text.substr(0, taken));
  EXPECT_FALSE(ends.client->has_unsent());
}

struct Stranger {
  std::string task;
  std::string authority;
  std::string why;
};

TEST(TlsChannelTest, WhoIsNotTheExpectedTaskGetsNothing) {
  const std::string secret = "the gradient";
  for (const Stranger& stranger :
       {Stranger{"mnist/worker/1", "theirs", "is of another authority"},
        {"other/worker/1", "ours", "is worker/1 of other, not worker/1"},
        {"mnist/worker/2", "ours", "is worker/2 of mnist, not worker/1"},
        {"mnist/ps/1", "ours", "is ps/1 of mnist, not worker/1"}}) {
    SCOPED_TRACE(stranger.why);
    auto [left, right] = SocketPair();
    const Pair ends = PairOn(std::move(left), std::move(right), stranger.task,
                             stranger.authority);
    // The stranger does not look who answers, and waits for what comes.
    std::thread client([&] {
      (void)SendAll(*ends.client, "push", {4});
      shutdown(ends.client->socket().get(), SHUT_WR);
    });
    const absl::Status sent = SendAll(*ends.server, secret, {secret.size()});
    client.join();
    EXPECT_THAT(sent, StatusIs(absl::StatusCode::kUnauthenticated,
                               HasSubstr(stranger.why)));
    EXPECT_THAT(ReceiveAll(*ends.server, 4).status(),
                StatusIs(absl::StatusCode::kUnauthenticated));
    EXPECT_FALSE(ends.server->has_peer());
  }
}

// Hands on what comes from one end to the other; `change` sees all bytes.
void Relay(const Descriptor& from, const Descriptor& to,
           const std::function<void(char*, size_t)>& change) {
  char bytes[4096];
  ssize_t count;
  while ((count = recv(from.get(), bytes, sizeof(bytes), 0)) > 0) {
    change(bytes, count);
    send(to.get(), bytes, count, MSG_NOSIGNAL);
  }
  shutdown(to.get(), SHUT_WR);
}

TEST(TlsChannelTest, AChangedByteEndsTheChannelBeforeAnybodyReadsIt) {
  for (const size_t changed : {30, 2'000, 8'000, 9'000}) {
    SCOPED_TRACE(changed);
    auto [left, relay_left] = SocketPair();
    auto [right, relay_right] = SocketPair();
    const Pair ends = PairOn(std::move(left), std::move(right));
    size_t seen = 0;
    std::thread there([&] {
      Relay(relay_left, relay_right, [&](char* bytes, size_t count) {
        if (changed >= seen && changed < seen + count) {
          bytes[changed - seen] ^= 4;
        }
        seen += count;
      });
    });
    std::thread back(
        [&] { Relay(relay_right, relay_left, [](char*, size_t) {}); });
    const std::string text = Text(100'000);
    std::thread client([&] {
      (void)SendAll(*ends.client, text, {text.size()});
      shutdown(ends.client->socket().get(), SHUT_WR);
    });
    std::string got;
    absl::Status status;
    while (status.ok()) {
      const absl::StatusOr<std::string> some = ReceiveAll(*ends.server, 1, 1);
      status = some.status();
      if (some.ok()) got += *some;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    EXPECT_LT(got.size(), text.size());
    EXPECT_TRUE(got == text.substr(0, got.size()));
    shutdown(ends.server->socket().get(), SHUT_RDWR);
    client.join();
    there.join();
    back.join();
  }
}

TEST(TlsChannelTest, APeerThatHasEndedIsStillSentTo) {
  auto [left, right] = SocketPair();
  const Pair ends = PairOn(std::move(left), std::move(right));
  std::thread client([&] {
    EXPECT_OK(SendAll(*ends.client, "last", {4}));
    EXPECT_OK(ends.client->SayEnd());
  });
  EXPECT_EQ(ReceiveAll(*ends.server, 4).value_or(""), "last");
  client.join();
  EXPECT_THAT(ReceiveAll(*ends.server, 1).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ended")));
  EXPECT_OK(SendAll(*ends.server, "answer", {6}));
  EXPECT_EQ(ReceiveAll(*ends.client, 6).value_or(""), "answer");
}

// As a task does that has answered and is gone, with what it was sent unread.
TEST(TlsChannelTest, WhatHasComeIsReadAlsoIfNothingCanBeSent) {
  auto [left, right] = SocketPair();
  Pair ends = PairOn(std::move(left), std::move(right));
  std::thread hello([&] { EXPECT_OK(SendAll(*ends.client, "hello", {5})); });
  ASSERT_OK(ReceiveAll(*ends.server, 5));
  hello.join();
  const std::string last = Text(50'000);
  ASSERT_OK(SendAll(*ends.client, "unread", {6}));
  ASSERT_OK(SendAll(*ends.server, last, {last.size()}));
  ends.server = nullptr;
  EXPECT_THAT(SendAll(*ends.client, "more", {4}),
              StatusIs(absl::StatusCode::kUnavailable));
  const absl::StatusOr<std::string> got = ReceiveAll(*ends.client, last.size());
  ASSERT_OK(got);
  EXPECT_TRUE(*got == last);
  EXPECT_THAT(ReceiveAll(*ends.client, 1).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(TlsContextTest, WhatOpenSslDoesNotTakeIsRefused) {
  const CertificateDirectory directory("of_no_use", "ours");
  directory.Issue("mnist/ps/1");
  const KeyMaterial good = directory.files().Read().value();
  const PeerIdentity identity = IdentityOf(good, Clock::Real().Now()).value();
  directory.Issue("mnist/ps/1");
  const KeyMaterial other = directory.files().Read().value();
  const auto status_of = [&](const std::string& certificates,
                             const std::string& key,
                             const std::string& authorities) {
    return TlsContext::Make({certificates, key, authorities}, identity)
        .status();
  };
  EXPECT_OK(status_of(good.certificates, good.private_key, good.authorities));
  EXPECT_THAT(status_of("", good.private_key, good.authorities),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the certificate")));
  EXPECT_THAT(
      status_of(good.certificates, other.private_key, good.authorities),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the key")));
  EXPECT_THAT(status_of(good.certificates, "half a key", good.authorities),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(status_of(good.certificates, good.private_key, ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
