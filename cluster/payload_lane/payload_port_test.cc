// How lanes are opened, or are not: from an offer to two connected sockets.

#include "cluster/payload_lane/payload_port.h"

#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/payload_lane/listening_socket.h"
#include "cluster/payload_lane/payload_connection.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/testing/lane_test.h"
#include "cluster/trust/mutual_proof.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class PayloadPortTest : public LaneTest {};

TEST_F(PayloadPortTest, ASecretIsGoodForOneConnection) {
  Taken taken, connected, again;
  const PayloadOffer offer = Expect(taken);
  Connect(offer, connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  Connect(offer, again);
  EXPECT_THAT(again.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused")));
}

TEST_F(PayloadPortTest, AnUnknownSecretIsRefused) {
  Taken taken, connected;
  PayloadOffer offer = Expect(taken);
  offer.secret[3] ^= 1;
  Connect(offer, connected);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(taken.HasBeenSet());
  host_ = nullptr;
  EXPECT_THAT(taken.Get().status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PayloadPortTest, AnOfferThatWasTakenBackIsRefused) {
  Taken taken, connected;
  const PayloadOffer offer = Expect(taken);
  EXPECT_TRUE(host_->Forget(offer.id));
  EXPECT_FALSE(host_->Forget(offer.id));
  Connect(offer, connected);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PayloadPortTest, StrangersAreTurnedAwayAndHoldUpNobody) {
  std::vector<Descriptor> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(ConnectStranger());
  const Descriptor browser = ConnectStranger();
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(send(browser.get(), request.data(), request.size(), 0), 0);
  EXPECT_TRUE(IsClosed(browser));
  OpenEnds();
  ASSERT_OK(worker_.Write(BufferOf("hello")));
  EXPECT_EQ(*ps_.Read(), "hello");
}

// Opens a lane by hand, sending byte by byte; returns the ps's challenge.
std::string SayHelloSlowly(const Descriptor& socket, const std::string& hello) {
  for (const char c : hello) EXPECT_EQ(send(socket.get(), &c, 1, 0), 1);
  std::string challenge(kPayloadChallengeBytes, '\0');
  EXPECT_EQ(recv(socket.get(), challenge.data(), challenge.size(), MSG_WAITALL),
            static_cast<ssize_t>(challenge.size()));
  return challenge;
}

TEST_F(PayloadPortTest, ASlowHelloAndProofAreHeard) {
  Taken taken;
  const PayloadOffer offer = Expect(taken);
  const Descriptor slow = ConnectStranger();
  const std::string hello = MakePayloadHello(offer.id, DrawNonce());
  const std::string nonce = SayHelloSlowly(slow, hello).substr(0, kNonceBytes);
  for (const char c : ProofOf(offer.secret, ProofSide::kOpener, hello, nonce)) {
    ASSERT_EQ(send(slow.get(), &c, 1, 0), 1);
  }
  ASSERT_OK(taken.Get());
}

// Whoever has seen a worker's hello on the wire knows the offer's id, and what
// the ps has answered, but not the secret.
TEST_F(PayloadPortTest, AStrangerWhoKnowsTheIdDoesNotTakeTheWorkersPlace) {
  Taken taken, connected;
  const PayloadOffer offer = Expect(taken);
  const Descriptor stranger = ConnectStranger();
  const std::string hello = MakePayloadHello(offer.id, DrawNonce());
  const std::string challenge = SayHelloSlowly(stranger, hello);
  const std::string reflected = challenge.substr(kNonceBytes);
  ASSERT_EQ(send(stranger.get(), reflected.data(), reflected.size(), 0),
            static_cast<ssize_t>(kProofBytes));
  EXPECT_TRUE(IsClosed(stranger));
  EXPECT_FALSE(taken.HasBeenSet());
  Connect(offer, connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
}

TEST_F(PayloadPortTest, APortThatHasNotTheSecretIsNotTalkedTo) {
  ASSERT_OK_AND_ASSIGN(const Descriptor listening,
                       ListenOn("127.0.0.1", 0, "a test"));
  PayloadOffer offer = PayloadOffer::Draw(PortOf(listening));
  Taken connected;
  Connect(offer, connected);
  pollfd polled = {listening.get(), POLLIN, 0};
  ASSERT_EQ(poll(&polled, 1, 20000), 1);
  const Descriptor impostor(accept(listening.get(), nullptr, nullptr));
  const std::string challenge(kPayloadChallengeBytes, 'x');
  ASSERT_GT(send(impostor.get(), challenge.data(), challenge.size(), 0), 0);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("another program answers")));
}

TEST_F(PayloadPortTest, AHostThatEndsTellsThoseWhoWait) {
  Taken taken;
  Expect(taken);
  host_ = nullptr;
  EXPECT_THAT(taken.Get().status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PayloadPortTest, APortWithoutAHostIsNamed) {
  Taken connected;
  PayloadOffer offer = {.port = host_->port()};
  host_ = nullptr;
  Connect(offer, connected);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(absl::StrCat(offer.port)),
                             HasSubstr("Connection refused"))));
}

TEST_F(PayloadPortTest, APeerWithoutAnAddressIsNamed) {
  for (const std::string peer :
       {"unix:/tmp/x", "", "ipv4:", "ipv6:[fe80::1%"}) {
    Taken connected;
    Connect({.port = 1}, connected, peer);
    EXPECT_THAT(connected.Get().status(),
                StatusIs(absl::StatusCode::kUnavailable))
        << peer;
  }
}

}  // namespace
}  // namespace parasol
