// What carries a lane's messages: a socket in clear text or, in a job with
// certificates, TLS between the tasks that the certificates name.

#include "cluster/payload_lane/lane_socket.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/payload_lane/testing/lane_test.h"
#include "cluster/trust/testing/certificate_directory.h"
#include "cluster/trust/trust.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Trust> TrustOf(absl::string_view task) {
  const CertificateDirectory directory(
      absl::StrCat("lanes_", absl::StrReplaceAll(task, {{"/", "_"}})), "ours");
  directory.Issue(task);
  return Trust::OfFiles(directory.files(), Clock::Real()).value();
}

class EncryptedLaneTest : public LaneTest {
 protected:
  explicit EncryptedLaneTest(bool has_certificates = true)
      : LaneTest(has_certificates ? TrustOf("mnist/ps/0") : nullptr) {}

  // Opens a lane of worker/1; its certificate is `task`'s.
  void OpenInTls(absl::string_view task = "mnist/worker/1",
                 const ExpectedPeer& ps = {PeerRole::kPs, 0}) {
    Taken taken, connected;
    Connect(Expect(taken), connected);
    ASSERT_OK(connected.Get());
    ASSERT_OK(taken.Get());
    trust_ = TrustOf(task);
    worker_.Open(LaneSocket(*std::move(connected.Get()), trust_.get(),
                            PeerSide::kClient, ps));
    ps_.Open(host_->SocketOf(*std::move(taken.Get()), {PeerRole::kWorker, 1}));
  }

  std::shared_ptr<const Trust> trust_;
};

// Lanes in clear text and in TLS, which no message can tell apart.
class LaneCarrierTest : public EncryptedLaneTest,
                        public testing::WithParamInterface<bool> {
 protected:
  LaneCarrierTest() : EncryptedLaneTest(GetParam()) {}

  void Open() { GetParam() ? OpenInTls() : OpenEnds(); }
};

INSTANTIATE_TEST_SUITE_P(Carriers, LaneCarrierTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Tls" : "ClearText";
                         });

TEST_P(LaneCarrierTest, MessagesOfAllSizesGoBothWays) {
  Open();
  for (const size_t size :
       {0, 1, 100, 16375, 16376, 16383, 16384, 300000, 20 << 20}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 / 7);
    ASSERT_OK(worker_.Write(BufferOf(bytes, 3)));
    EXPECT_EQ(*ps_.Read(), bytes);
    ASSERT_OK(ps_.Write(BufferOf(bytes, 2000)));
    EXPECT_EQ(*worker_.Read(), bytes);
  }
}

TEST_P(LaneCarrierTest, SeveralMessagesOfAWriteComeOneByOne) {
  Open();
  std::vector<std::string> texts;
  std::vector<grpc::ByteBuffer> messages;
  for (const size_t size : {3, 0, 3 << 20, 20, 300000, 1}) {
    texts.push_back(std::string(size, static_cast<char>('a' + texts.size())));
    messages.push_back(BufferOf(texts.back(), 2));
  }
  for (int i = 0; i < 3; ++i) {
    worker_.BeginWrite(messages);
    EXPECT_OK(worker_.AwaitWrite());
    for (const std::string& text : texts) EXPECT_EQ(*ps_.Read(), text);
  }
}

// More than the kernel keeps of a socket: the ends must not wait for each
// other.
TEST_P(LaneCarrierTest, BothEndsCanWriteAtOnce) {
  Open();
  const std::string bytes(32 << 20, 'x');
  worker_.BeginWrite(BufferOf(bytes));
  ps_.BeginWrite(BufferOf(bytes));
  EXPECT_OK(worker_.AwaitWrite());
  EXPECT_OK(ps_.AwaitWrite());
  EXPECT_EQ(worker_.Read()->size(), bytes.size());
  EXPECT_EQ(ps_.Read()->size(), bytes.size());
}

TEST_P(LaneCarrierTest, AnEndThatIsClosedEndsWhatTheOtherOneHasUnderWay) {
  Open();
  ps_.Close();
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(worker_.Write(BufferOf(std::string(1 << 20, 'x'))),
              StatusIs(absl::StatusCode::kUnavailable));
}

// A close with bytes that nobody has received would drop what was written.
TEST_P(LaneCarrierTest, ALaneThatLingersDeliversWhatWasWritten) {
  Open();
  const std::string last(4 << 20, 'x');
  ps_.BeginWrite(BufferOf(last));
  worker_.BeginWrite(BufferOf(std::string(16 << 20, 'y')));
  ASSERT_OK(ps_.AwaitWrite());
  ps_.Linger();
  EXPECT_EQ(*worker_.Read(), last);
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_P(LaneCarrierTest, WhatIsReceivedAheadIsDeliveredOnceAndInOrder) {
  Open();
  const std::string large(3 << 20, 'x');
  worker_.BeginWrite({BufferOf("first"), BufferOf(large), BufferOf("last")});
  ps_.ReceiveAhead({[] {}, [] {}, [] {}});
  for (const std::string& text : {std::string("first"), large, {"last"}}) {
    ps_.ReceiveAhead({[] {}});
    EXPECT_EQ(*ps_.Read(), text);
  }
  EXPECT_OK(worker_.AwaitWrite());
}

// The lane's secret in another task's hands.
TEST_F(EncryptedLaneTest, AnotherWorkersCertificateOpensNoLane) {
  OpenInTls("mnist/worker/2");
  worker_.BeginWrite(BufferOf("push"));
  EXPECT_THAT(
      ps_.Read().status(),
      StatusIs(absl::StatusCode::kUnauthenticated,
               HasSubstr("is worker/2 of mnist, not worker/1 of mnist")));
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(EncryptedLaneTest, AnotherPsIsSentNothing) {
  OpenInTls("mnist/worker/1", {PeerRole::kPs, 1});
  worker_.BeginWrite(BufferOf("push"));
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("is ps/0 of mnist, not ps/1 of mnist")));
  EXPECT_THAT(worker_.AwaitWrite(),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kUnavailable));
}

// A peer that begins in clear text, as where only one end has certificates.
TEST_F(EncryptedLaneTest, ClearTextEndsTheLane) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  worker_.Open(*std::move(connected.Get()));
  ps_.Open(host_->SocketOf(*std::move(taken.Get()), {PeerRole::kWorker, 1}));
  worker_.BeginWrite(BufferOf("push"));
  EXPECT_THAT(ps_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("does the peer have certificates")));
}

}  // namespace
}  // namespace parasol
