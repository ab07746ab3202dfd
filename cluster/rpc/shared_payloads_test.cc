#include "cluster/rpc/shared_payloads.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using Shared = google::protobuf::RepeatedPtrField<wire::SharedPayload>;

constexpr size_t kBlock = SharedPayloads::kBlockBytes;
constexpr size_t kMin = SharedPayloads::kMinBytes;

std::string Text(size_t size, char first) {
  std::string text(size, first);
  for (size_t i = 0; i < size; i += 100) text[i] = static_cast<char>(i / 100);
  return text;
}

std::string TextOf(const PayloadView& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(0, text.size(), text.data());
  return text;
}

class SharedPayloadsTest : public ::testing::Test {
 protected:
  // What a frame carries, and where it is held on the receiver's end.
  struct Frame {
    Shared shared;
    size_t sent = 0;
    std::vector<PayloadRef> inline_payloads;
    std::vector<PayloadView> received;
    SharedPayloads::Hold hold;
  };

  void SetUp() override {
    auto worker = SharedPayloads::Create();
    ASSERT_OK(worker);
    worker_ = *std::move(worker);
    auto ps = SharedPayloads::Open(worker_->offer());
    ASSERT_OK(ps);
    ps_ = *std::move(ps);
  }

  static std::vector<PayloadRef> Refs(const std::vector<std::string>& texts) {
    std::vector<PayloadRef> refs;
    for (const std::string& text : texts) {
      refs.push_back({text.data(), text.size(), nullptr});
    }
    return refs;
  }

  static Frame Send(SharedPayloads& from,
                    const std::vector<std::string>& texts) {
    Frame frame;
    frame.inline_payloads = Refs(texts);
    frame.sent = from.Send(frame.inline_payloads, frame.shared);
    for (const PayloadRef& payload : frame.inline_payloads) {
      frame.received.push_back(PayloadView(
          {{static_cast<const char*>(payload.data), payload.size}}));
    }
    return frame;
  }

  static absl::Status Receive(SharedPayloads& at, Frame& frame) {
    auto hold = at.Receive(frame.shared, frame.received);
    if (!hold.ok()) return hold.status();
    frame.hold = *std::move(hold);
    return absl::OkStatus();
  }

  std::unique_ptr<SharedPayloads> worker_, ps_;
};

TEST_F(SharedPayloadsTest, PayloadsArriveInOrderBothWays) {
  const std::vector<std::string> texts = {
      Text(10, 'a'),       Text(kMin, 'b'),   "",
      Text(kMin - 1, 'c'), Text(kBlock, 'd'), Text(3 * kBlock + 5, 'e'),
      Text(1, 'f')};
  for (const auto& [from, to] : {std::pair(worker_.get(), ps_.get()),
                                 std::pair(ps_.get(), worker_.get())}) {
    Frame frame = Send(*from, texts);
    EXPECT_EQ(frame.shared.size(), 3);
    EXPECT_EQ(frame.inline_payloads.size(), 4u);
    ASSERT_OK(Receive(*to, frame));
    ASSERT_EQ(frame.received.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(TextOf(frame.received[i]), texts[i]) << i;
      EXPECT_EQ(frame.received[i].may_change(), texts[i].size() >= kMin) << i;
    }
    EXPECT_EQ(frame.hold.bytes(), kMin + kBlock + 3 * kBlock + 5);
    EXPECT_EQ(frame.sent, frame.hold.bytes());
  }
}

TEST_F(SharedPayloadsTest, WithoutFreeBlocksThePayloadStaysInTheFrame) {
  std::vector<Frame> held;
  for (size_t i = 0; i < SharedPayloads::kBlocks; ++i) {
    held.push_back(Send(*worker_, {Text(kBlock, 'x')}));
    ASSERT_EQ(held.back().shared.size(), 1);
    ASSERT_OK(Receive(*ps_, held.back()));
  }
  Frame full = Send(*worker_, {Text(kMin, 'y')});
  EXPECT_TRUE(full.shared.empty());
  EXPECT_EQ(full.inline_payloads.size(), 1u);
  held[5] = Frame();
  Frame again = Send(*worker_, {Text(kMin, 'z')});
  ASSERT_OK(Receive(*ps_, again));
  EXPECT_EQ(TextOf(again.received.at(0)), Text(kMin, 'z'));
  EXPECT_EQ(TextOf(held[6].received.at(0)), Text(kBlock, 'x'));
}

TEST_F(SharedPayloadsTest, APayloadLargerThanAllBlocksStaysInTheFrame) {
  const std::string large(SharedPayloads::kBlocks * kBlock + 1, 'l');
  Frame frame = Send(*worker_, {large});
  EXPECT_TRUE(frame.shared.empty());
}

TEST_F(SharedPayloadsTest, FreedBlocksAreTakenAgainFirst) {
  for (int i = 0; i < 1000; ++i) {
    Frame frame = Send(*worker_, {Text(2 * kBlock, static_cast<char>(i))});
    ASSERT_EQ(frame.shared.size(), 1);
    EXPECT_EQ(frame.shared[0].block(0), 0u);
    EXPECT_EQ(frame.shared[0].block(1), 1u);
    ASSERT_OK(Receive(*ps_, frame));
  }
}

TEST_F(SharedPayloadsTest, WhatIsHeldOutlivesTheStream) {
  Frame frame = Send(*worker_, {Text(kBlock, 'q')});
  ASSERT_OK(Receive(*ps_, frame));
  worker_.reset();
  ps_.reset();
  EXPECT_EQ(TextOf(frame.received.at(0)), Text(kBlock, 'q'));
}

TEST_F(SharedPayloadsTest, AHeaderThatCannotBeIsInvalid) {
  const Frame good = Send(*worker_, {Text(2 * kBlock, 'g')});
  const auto with = [&](auto change) {
    Frame bad;
    bad.shared = good.shared;
    change(*bad.shared.Mutable(0));
    return Receive(*ps_, bad);
  };
  using P = wire::SharedPayload;
  const std::vector<absl::Status> statuses = {
      with([](P& p) { p.set_position(1); }),
      with([](P& p) { p.set_bytes(0); }),
      with([](P& p) { p.set_bytes(kBlock); }),
      with([](P& p) { p.set_bytes(2 * kBlock + 1); }),
      with([](P& p) { p.set_bytes(~uint64_t{0}); }),
      with([](P& p) { p.clear_block(); }),
      with([](P& p) { p.set_block(0, SharedPayloads::kBlocks); }),
      with([](P& p) { p.set_block(0, ~uint32_t{0}); }),
      with([](P& p) { p.set_block(1, 7); })};  // not filled
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_THAT(statuses[i], StatusIs(absl::StatusCode::kInvalidArgument)) << i;
  }
}

TEST_F(SharedPayloadsTest, ABlockIsNamedOnce) {
  Frame twice = Send(*worker_, {Text(2 * kBlock, 'g')});
  Frame again = Frame();
  again.shared = twice.shared;
  Frame inside = Frame();
  inside.shared = twice.shared;
  inside.shared.Mutable(0)->set_block(1, inside.shared[0].block(0));
  EXPECT_THAT(Receive(*ps_, inside),
              StatusIs(absl::StatusCode::kInvalidArgument));
  twice = Send(*worker_, {Text(2 * kBlock, 'h')});
  ASSERT_OK(Receive(*ps_, twice));
  again.shared = twice.shared;
  EXPECT_THAT(Receive(*ps_, again),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(TextOf(twice.received.at(0)), Text(2 * kBlock, 'h'));
  Frame next = Send(*worker_, {Text(2 * kBlock, 'i')});
  EXPECT_EQ(TextOf(twice.received.at(0)), Text(2 * kBlock, 'h'));
}

TEST_F(SharedPayloadsTest, NeighbouringBlocksAreOnePiece) {
  Frame frame = Send(*worker_, {Text(3 * kBlock - 9, 'n')});
  ASSERT_OK(Receive(*ps_, frame));
  EXPECT_EQ(frame.received.at(0).pieces().size(), 1u);
}

TEST_F(SharedPayloadsTest, PositionsThatDoNotAscendAreInvalid) {
  Frame frame = Send(*worker_, {Text(kMin, 'a'), Text(kMin, 'b')});
  frame.shared.SwapElements(0, 1);
  EXPECT_THAT(Receive(*ps_, frame),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
