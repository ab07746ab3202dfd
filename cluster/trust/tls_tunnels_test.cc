#include "cluster/trust/tls_tunnels.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

struct Ends {
  Descriptor first;
  Descriptor second;
};

Ends Pair() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// The two ends of a connection over TCP.
Ends TcpPair() {
  const Descriptor listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(where);
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  EXPECT_EQ(bind(listening.get(), address, size), 0);
  EXPECT_EQ(listen(listening.get(), 1), 0);
  EXPECT_EQ(getsockname(listening.get(), address, &size), 0);
  Ends ends = {Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
               Descriptor()};
  EXPECT_EQ(connect(ends.first.get(), address, size), 0);
  ends.second =
      Descriptor(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return ends;
}

std::unique_ptr<TlsTunnels> TunnelsOf(const CertificateDirectory& directory,
                                      absl::string_view task) {
  directory.Issue(task);
  return TlsTunnels::Start(directory.files(), 2, Clock::Real()).value();
}

std::unique_ptr<TlsTunnels> TunnelsOf(absl::string_view task,
                                      absl::string_view authority = "ours") {
  return TunnelsOf(CertificateDirectory("tunnels", authority), task);
}

// Makes a tunnel's socket one that blocks, for a test that reads and writes.
Descriptor Blocking(absl::StatusOr<Descriptor> socket) {
  EXPECT_OK(socket);
  EXPECT_EQ(fcntl(socket->get(), F_SETFL, 0), 0);
  return *std::move(socket);
}

void SendBytes(const Descriptor& socket, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(socket.get(), bytes.data() + sent,
                               bytes.size() - sent, MSG_NOSIGNAL);
    ASSERT_GT(count, 0);
    sent += count;
  }
}

// Returns what comes, up to the end or to `bytes`.
std::string Receive(const Descriptor& socket, size_t bytes) {
  std::string received(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t count =
        recv(socket.get(), received.data() + have, bytes - have, 0);
    if (count <= 0) break;
    have += count;
  }
  received.resize(have);
  return received;
}

std::string Pattern(size_t bytes, int seed) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(i * 31 + i / 251 + seed);
  }
  return text;
}

// Two workers with a tunnel between them.
struct Connected {
  Descriptor client;
  Descriptor server;
};

Connected Connect(TlsTunnels& client, TlsTunnels& server, Ends ends = Pair()) {
  return {Blocking(client.Open(std::move(ends.first), PeerSide::kClient,
                               PeerRole::kWorker)),
          Blocking(server.Open(std::move(ends.second), PeerSide::kServer,
                               PeerRole::kWorker))};
}

TEST(TlsTunnelsTest, BytesArriveBothWaysAtOnce) {
  const auto one = TunnelsOf("mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  const Connected connected = Connect(*one, *two);
  const std::string there = Pattern(5 << 20, 1);
  const std::string back = Pattern(3 << 20, 2);
  std::thread client([&] { SendBytes(connected.client, there); });
  std::thread server([&] { SendBytes(connected.server, back); });
  std::string got_back;
  std::thread reader(
      [&] { got_back = Receive(connected.client, back.size()); });
  EXPECT_TRUE(Receive(connected.server, there.size()) == there);
  for (std::thread* thread : {&client, &server, &reader}) thread->join();
  EXPECT_TRUE(got_back == back);
}

TEST(TlsTunnelsTest, AllThatWasWrittenArrivesBeforeTheEnd) {
  const auto one = TunnelsOf("mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  Connected connected = Connect(*one, *two);
  const std::string text = Pattern(1 << 20, 3);
  std::thread client([&] {
    SendBytes(connected.client, text);
    connected.client = Descriptor();
  });
  EXPECT_TRUE(Receive(connected.server, text.size() + 1) == text);
  client.join();
}

TEST(TlsTunnelsTest, WhatAProcessWroteBeforeItsEndArrives) {
  auto one = TunnelsOf("mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  Connected connected = Connect(*one, *two);
  const std::string text = Pattern(1 << 18, 3);
  std::thread client([&] {
    SendBytes(connected.client, text);
    connected.client = Descriptor();
    one = nullptr;
  });
  // The peer writes to it, too, and is not heard any more.
  std::thread server([&] {
    const std::string unheard = Pattern(1 << 16, 5);
    send(connected.server.get(), unheard.data(), unheard.size(), MSG_NOSIGNAL);
  });
  EXPECT_TRUE(Receive(connected.server, text.size() + 1) == text);
  client.join();
  server.join();
}

TEST(TlsTunnelsTest, NothingTravelsInClearText) {
  const auto one = TunnelsOf("mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  // Whoever is between the two hands on what he sees.
  Ends left = Pair();
  Ends right = Pair();
  const Descriptor client = Blocking(
      one->Open(std::move(left.first), PeerSide::kClient, PeerRole::kWorker));
  const Descriptor server = Blocking(
      two->Open(std::move(right.first), PeerSide::kServer, PeerRole::kWorker));
  std::string seen;
  const auto relay = [](const Descriptor& from, const Descriptor& to,
                        std::string* seen) {
    char bytes[4096];
    ssize_t count;
    while ((count = recv(from.get(), bytes, sizeof(bytes), 0)) > 0) {
      if (seen != nullptr) seen->append(bytes, count);
      send(to.get(), bytes, count, MSG_NOSIGNAL);
    }
  };
  std::thread there([&] { relay(left.second, right.second, &seen); });
  std::thread back([&] { relay(right.second, left.second, nullptr); });
  const std::string secret = "the gradient of the first layer";
  SendBytes(client, secret);
  EXPECT_EQ(Receive(server, secret.size()), secret);
  shutdown(left.second.get(), SHUT_RDWR);
  shutdown(right.second.get(), SHUT_RDWR);
  there.join();
  back.join();
  EXPECT_GT(seen.size(), secret.size());
  EXPECT_FALSE(absl::StrContains(seen, secret.substr(0, 8)));
}

// A task that is none of the job, or of another role, or has no keys.
TEST(TlsTunnelsTest, WhoIsNotTrustedGetsNothing) {
  const auto one = TunnelsOf("mnist/worker/0");
  for (const auto& [task, authority] :
       {std::pair("mnist/worker/1", "theirs"),
        std::pair("other/worker/1", "ours"), std::pair("mnist/ps/1", "ours")}) {
    SCOPED_TRACE(task);
    const auto stranger = TunnelsOf(task, authority);
    for (const bool connects : {false, true}) {
      const Connected connected =
          connects ? Connect(*stranger, *one) : Connect(*one, *stranger);
      const Descriptor& own = connects ? connected.server : connected.client;
      const Descriptor& other = connects ? connected.client : connected.server;
      EXPECT_EQ(Receive(own, 1), "");
      EXPECT_EQ(Receive(other, 1), "");
    }
  }
}

// In a process of its own: the log has such a line once in ten seconds.
TEST(TlsTunnelsDeathTest, WhoIsRefusedIsInTheLogWithItsAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refuse = [] {
    auto one = TunnelsOf("mnist/worker/0");
    const auto stranger = TunnelsOf("mnist/worker/1", "theirs");
    const Connected connected = Connect(*stranger, *one, TcpPair());
    Receive(connected.server, 1);
    one = nullptr;
    std::exit(0);
  };
  EXPECT_EXIT(refuse(), testing::ExitedWithCode(0),
              "refused a connection with 127\\.0\\.0\\.1:[0-9]+: the "
              "certificate is of another authority.*worker/[01] of mnist");
}

TEST(TlsTunnelsTest, ClearTextEndsTheTunnel) {
  const auto one = TunnelsOf("mnist/worker/0");
  for (const PeerSide side : {PeerSide::kClient, PeerSide::kServer}) {
    Ends ends = Pair();
    const Descriptor own =
        Blocking(one->Open(std::move(ends.first), side, PeerRole::kWorker));
    SendBytes(ends.second, std::string(1000, 'x'));
    EXPECT_EQ(Receive(own, 1), "");
  }
}

TEST(TlsTunnelsTest, NewTunnelsUseNewCertificates) {
  const CertificateDirectory directory("rotated", "ours");
  const auto one = TunnelsOf(directory, "mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  directory.Issue("mnist/worker/0");
  directory.Write(directory.files().key, "half a k");
  const Connected half = Connect(*one, *two);
  SendBytes(half.client, "a");
  EXPECT_EQ(Receive(half.server, 1), "a");
  directory.Issue("mnist/worker/0");
  const Connected whole = Connect(*one, *two);
  SendBytes(whole.server, "b");
  EXPECT_EQ(Receive(whole.client, 1), "b");
}

// A file system that does not answer holds up who asks it, and no other.
TEST(TlsTunnelsTest, AFileThatIsSlowHoldsUpNoOtherTunnel) {
  const CertificateDirectory directory("slow", "ours");
  const auto one = TunnelsOf(directory, "mnist/worker/0");
  const auto two = TunnelsOf("mnist/worker/1");
  const std::string path = directory.files().certificate;
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  Connected slow;
  std::thread opens([&] { slow = Connect(*one, *two); });
  // Returns when the other thread reads the file.
  Descriptor writes(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(writes.is_open());
  ASSERT_EQ(unlink(path.c_str()), 0);
  const Connected quick = Connect(*one, *two);
  SendBytes(quick.client, "a");
  EXPECT_EQ(Receive(quick.server, 1), "a");
  writes = Descriptor();
  opens.join();
  SendBytes(slow.client, "b");
  EXPECT_EQ(Receive(slow.server, 1), "b");
}

TEST(TlsTunnelsTest, FilesOfNoUseAreRefused) {
  EXPECT_THAT(
      TlsTunnels::Start({"/nowhere", "k", "a"}, 1, Clock::Real()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
