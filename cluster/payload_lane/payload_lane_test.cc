// A lane from its offer to its end: both ends over loopback.

#include "cluster/payload_lane/payload_lane.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "cluster/payload_lane/listening_socket.h"
#include "cluster/payload_lane/payload_connection.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/trust/mutual_proof.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

grpc::ByteBuffer BufferOf(const std::string& bytes, size_t pieces = 1) {
  std::vector<grpc::Slice> slices;
  const size_t size = bytes.size() / pieces + 1;
  for (size_t at = 0; at < bytes.size(); at += size) {
    slices.emplace_back(bytes.substr(at, size));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// An end that keeps what it reads, and waits for what the test wants.
class End : private PayloadLane::Observer {
 public:
  explicit End(SocketLoop& loop) : loop_(loop) {}
  ~End() override {
    if (lane_ != nullptr) Close();
  }

  void Open(Descriptor socket) {
    const auto shared = std::make_shared<Descriptor>(std::move(socket));
    AtLoop([this, shared] {
      lane_ = PayloadLane::Make(std::move(*shared), loop_, *this);
      lane_->Read();
    });
  }

  // Has the end close its lane when a read fails, and be gone then. Called
  // before Open().
  void CloseOnError() { closes_on_error_ = true; }

  absl::Status Write(const grpc::ByteBuffer& message) {
    BeginWrite(message);
    return AwaitWrite();
  }
  void BeginWrite(const grpc::ByteBuffer& message) {
    BeginWrite(std::vector<grpc::ByteBuffer>{message});
  }
  void BeginWrite(const std::vector<grpc::ByteBuffer>& messages) {
    {
      absl::MutexLock lock(&mu_);
      written_.reset();
    }
    if (lane_->Write(messages)) OnPayloadWritten(absl::OkStatus());
  }
  absl::Status AwaitWrite() {
    absl::MutexLock lock(&mu_);
    const auto is_written = [this] { return written_.has_value(); };
    mu_.Await(absl::Condition(&is_written));
    return *written_;
  }

  absl::StatusOr<std::string> Read() {
    absl::MutexLock lock(&mu_);
    const auto has_read = [this] { return !read_.empty(); };
    mu_.Await(absl::Condition(&has_read));
    absl::StatusOr<std::string> read = std::move(read_.front());
    read_.pop_front();
    return read;
  }

  void Close() {
    AtLoop([this] { lane_->Close(); });
  }
  // Has another thread receive ahead of the loop's, which waits for it, after
  // each of `steps`.
  void ReceiveAhead(const std::vector<std::function<void()>>& steps) {
    AtLoop([&] {
      for (const auto& step : steps) {
        step();
        std::thread([this] { lane_->ReceiveAhead(); }).join();
      }
    });
  }
  void Linger() {
    AtLoop([this] { lane_->Linger(absl::Seconds(60)); });
  }

 private:
  void OnPayloadRead(const absl::Status& status,
                     grpc::ByteBuffer message) override {
    if (status.ok()) lane_->Read();
    if (!status.ok() && closes_on_error_ && !is_gone_) {
      lane_->Close();
      is_gone_ = true;
    }
    absl::MutexLock lock(&mu_);
    if (status.ok()) {
      read_.push_back(BytesOf(message));
    } else {
      read_.push_back(status);
    }
  }
  void OnPayloadWritten(const absl::Status& status) override {
    EXPECT_FALSE(is_gone_) << "called after Close()";
    absl::MutexLock lock(&mu_);
    EXPECT_FALSE(written_.has_value()) << "completed twice";
    written_ = status;
  }

  void AtLoop(const std::function<void()>& work) {
    absl::Notification done;
    loop_.Post([&] {
      work();
      done.Notify();
    });
    done.WaitForNotification();
  }

  SocketLoop& loop_;
  std::shared_ptr<PayloadLane> lane_;
  bool closes_on_error_ = false;
  bool is_gone_ = false;  // used by the loop's thread
  absl::Mutex mu_;
  std::optional<absl::Status> written_;
  std::deque<absl::StatusOr<std::string>> read_;
};

// One result of a callback, from another thread.
template <typename T>
class Result {
 public:
  void Set(T value) {
    value_.emplace(std::move(value));
    done_.Notify();
  }
  T& Get() {
    done_.WaitForNotification();
    return *value_;
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }

 private:
  absl::Notification done_;
  std::optional<T> value_;
};
using Taken = Result<absl::StatusOr<Descriptor>>;

class LaneTest : public testing::Test {
 protected:
  PayloadOffer Expect(Taken& taken) {
    return host_->Expect([&taken](absl::StatusOr<Descriptor> socket) {
      taken.Set(std::move(socket));
    });
  }

  void Connect(const PayloadOffer& offer, Taken& connected,
               const std::string& peer = "ipv4:127.0.0.1:1") {
    loop_.Post([this, offer, peer, &connected] {
      connection_ = PayloadConnection::Start(
          peer, offer, loop_, [&connected](absl::StatusOr<Descriptor> socket) {
            connected.Set(std::move(socket));
          });
    });
  }

  // Opens both ends of a lane.
  void OpenEnds() {
    Taken taken, connected;
    Connect(Expect(taken), connected);
    ASSERT_OK(connected.Get());
    ASSERT_OK(taken.Get());
    worker_.Open(*std::move(connected.Get()));
    ps_.Open(*std::move(taken.Get()));
  }

  Descriptor ConnectStranger() {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(host_->port());
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    return socket;
  }

  // Returns true if the other side closes the connection.
  static bool IsClosed(const Descriptor& socket) {
    char byte;
    return recv(socket.get(), &byte, 1, 0) <= 0;
  }

  std::unique_ptr<PayloadHost> host_ =
      PayloadHost::Start("127.0.0.1", 0, /*threads=*/1).value();
  std::shared_ptr<PayloadConnection> connection_;  // used by the loop's thread
  SocketLoop loop_;
  // The host's only loop.
  SocketLoop& host_loop_ = *host_->NextLoop();
  End worker_{loop_};
  End ps_{host_loop_};
};

TEST_F(LaneTest, MessagesOfAllSizesGoBothWays) {
  OpenEnds();
  for (const size_t size : {0, 1, 100, 16383, 16384, 300000, 20 << 20}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 / 7);
    ASSERT_OK(worker_.Write(BufferOf(bytes, 3)));
    EXPECT_EQ(*ps_.Read(), bytes);
    ASSERT_OK(ps_.Write(BufferOf(bytes, 2000)));
    EXPECT_EQ(*worker_.Read(), bytes);
  }
}

TEST_F(LaneTest, SeveralMessagesOfAWriteComeOneByOne) {
  OpenEnds();
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
TEST_F(LaneTest, BothEndsCanWriteAtOnce) {
  OpenEnds();
  const std::string bytes(32 << 20, 'x');
  worker_.BeginWrite(BufferOf(bytes));
  ps_.BeginWrite(BufferOf(bytes));
  EXPECT_OK(worker_.AwaitWrite());
  EXPECT_OK(ps_.AwaitWrite());
  EXPECT_EQ(worker_.Read()->size(), bytes.size());
  EXPECT_EQ(ps_.Read()->size(), bytes.size());
}

TEST_F(LaneTest, AnEndThatIsClosedEndsWhatTheOtherOneHasUnderWay) {
  OpenEnds();
  ps_.Close();
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(worker_.Write(BufferOf(std::string(1 << 20, 'x'))),
              StatusIs(absl::StatusCode::kUnavailable));
}

// A close with bytes that nobody has received would drop what was written.
TEST_F(LaneTest, ALaneThatLingersDeliversWhatWasWritten) {
  OpenEnds();
  const std::string last(4 << 20, 'x');
  ps_.BeginWrite(BufferOf(last));
  worker_.BeginWrite(BufferOf(std::string(16 << 20, 'y')));
  ASSERT_OK(ps_.AwaitWrite());
  ps_.Linger();
  EXPECT_EQ(*worker_.Read(), last);
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LaneTest, AFloodOfMessagesLeavesTurnsToOthers) {
  OpenEnds();
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  End flooded(host_loop_);
  flooded.Open(*std::move(taken.Get()));
  // Frames without a byte, for as long as the other lane is used.
  std::atomic<bool> stopped = false;
  std::thread flood([&] {
    const std::string frames(64 << 10, '\0');
    while (!stopped && send(connected.Get()->get(), frames.data(),
                            frames.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(worker_.Write(BufferOf("ping")));
    EXPECT_EQ(*ps_.Read(), "ping");
    ASSERT_OK(ps_.Write(BufferOf("pong")));
    EXPECT_EQ(*worker_.Read(), "pong");
  }
  stopped = true;
  shutdown(connected.Get()->get(), SHUT_RDWR);
  flood.join();
}

TEST_F(LaneTest, AWriteThatTheOtherEndNeverReadsEndsWithTheLane) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  worker_.Open(*std::move(connected.Get()));
  worker_.BeginWrite(BufferOf(std::string(32 << 20, 'x')));
  worker_.Close();
  EXPECT_THAT(worker_.AwaitWrite(), StatusIs(absl::StatusCode::kCancelled));
}

// As a stream does whose call has ended before: it is destroyed right away.
TEST_F(LaneTest, AnObserverThatClosesTheLaneInAReadIsNotCalledLater) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  worker_.CloseOnError();
  worker_.Open(*std::move(connected.Get()));
  worker_.BeginWrite(BufferOf(std::string(32 << 20, 'x')));
  // The end of what the ps sends; it still takes what the worker sends.
  shutdown(taken.Get()->get(), SHUT_WR);
  EXPECT_THAT(worker_.Read().status(),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(worker_.AwaitWrite(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LaneTest, WhatIsReceivedAheadIsDeliveredOnceAndInOrder) {
  OpenEnds();
  const std::string large(3 << 20, 'x');
  worker_.BeginWrite({BufferOf("first"), BufferOf(large), BufferOf("last")});
  ps_.ReceiveAhead({[] {}, [] {}, [] {}});
  for (const std::string& text : {std::string("first"), large, {"last"}}) {
    ps_.ReceiveAhead({[] {}});
    EXPECT_EQ(*ps_.Read(), text);
  }
  EXPECT_OK(worker_.AwaitWrite());
}

TEST_F(LaneTest, WhatEndsALaneIsToldAlsoIfItIsFoundAhead) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  ps_.Open(*std::move(taken.Get()));
  const auto put = [&](const void* bytes, size_t count) {
    ASSERT_EQ(send(connected.Get()->get(), bytes, count, 0), count);
  };
  const uint64_t lengths[] = {FrameLengthWord(4), FrameLengthWord(1 << 30)};
  ps_.ReceiveAhead({[&] { put(&lengths[0], 8); },
                    [&] { put("text", 4), put(&lengths[1], 8); },
                    [&] { connected.Get() = absl::CancelledError("closed"); }});
  EXPECT_EQ(*ps_.Read(), "text");
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("1073741824")));
}

TEST_F(LaneTest, APeerThatAnnouncesTooMuchIsNotReadFurther) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  ps_.Open(*std::move(taken.Get()));
  const uint64_t gigabyte = FrameLengthWord(1 << 30);
  ASSERT_EQ(send(connected.Get()->get(), &gigabyte, sizeof(gigabyte), 0), 8);
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("1073741824")));
  EXPECT_TRUE(IsClosed(*connected.Get()));
}

TEST_F(LaneTest, APeerThatDiesWithinAMessageBreaksTheLane) {
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  ps_.Open(*std::move(taken.Get()));
  const uint64_t announced = FrameLengthWord(1000);
  ASSERT_EQ(send(connected.Get()->get(), &announced, sizeof(announced), 0), 8);
  ASSERT_EQ(send(connected.Get()->get(), "half", 4, 0), 4);
  connected.Get() = absl::CancelledError("closed");
  EXPECT_THAT(ps_.Read().status(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LaneTest, ASecretIsGoodForOneConnection) {
  Taken taken, connected, again;
  const PayloadOffer offer = Expect(taken);
  Connect(offer, connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  Connect(offer, again);
  EXPECT_THAT(again.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused")));
}

TEST_F(LaneTest, AnUnknownSecretIsRefused) {
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

TEST_F(LaneTest, AnOfferThatWasTakenBackIsRefused) {
  Taken taken, connected;
  const PayloadOffer offer = Expect(taken);
  EXPECT_TRUE(host_->Forget(offer.id));
  EXPECT_FALSE(host_->Forget(offer.id));
  Connect(offer, connected);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(LaneTest, StrangersAreTurnedAwayAndHoldUpNobody) {
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

TEST_F(LaneTest, ASlowHelloAndProofAreHeard) {
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
TEST_F(LaneTest, AStrangerWhoKnowsTheIdDoesNotTakeTheWorkersPlace) {
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

TEST_F(LaneTest, APortThatHasNotTheSecretIsNotTalkedTo) {
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

TEST_F(LaneTest, AHostThatEndsTellsThoseWhoWait) {
  Taken taken;
  Expect(taken);
  host_ = nullptr;
  EXPECT_THAT(taken.Get().status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LaneTest, APortWithoutAHostIsNamed) {
  Taken connected;
  PayloadOffer offer = {.port = host_->port()};
  host_ = nullptr;
  Connect(offer, connected);
  EXPECT_THAT(connected.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(absl::StrCat(offer.port)),
                             HasSubstr("Connection refused"))));
}

TEST_F(LaneTest, APeerWithoutAnAddressIsNamed) {
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
