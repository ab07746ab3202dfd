// A lane from its first message to its end: both ends over loopback.

#include "cluster/payload_lane/payload_lane.h"

#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "cluster/payload_lane/testing/lane_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST_F(LaneTest, AFloodOfMessagesLeavesTurnsToOthers) {
  OpenEnds();
  Taken taken, connected;
  Connect(Expect(taken), connected);
  ASSERT_OK(connected.Get());
  ASSERT_OK(taken.Get());
  LaneEnd flooded(host_loop_);
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

}  // namespace
}  // namespace parasol
