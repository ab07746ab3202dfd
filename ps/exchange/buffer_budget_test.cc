#include "ps/exchange/buffer_budget.h"

#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

// `bytes` of a stream's responses.
PayloadRef Charged(BufferBudget::Share& share, size_t bytes) {
  PayloadRef payload = {.data = nullptr, .size = bytes, .owner = nullptr};
  share.Charge(payload);
  return payload;
}

TEST(BufferBudgetTest, WhatIsHeldIsCountedUntilItIsReleased) {
  const auto budget = BufferBudget::Create(1000);
  {
    BufferBudget::Hold hold = budget->Take(300);
    const BufferBudget::Hold moved = std::move(hold);
    EXPECT_EQ(budget->held_bytes(), 300);
    hold = budget->Take(7);
    EXPECT_EQ(budget->held_bytes(), 307);
  }
  EXPECT_EQ(budget->held_bytes(), 0);
}

TEST(BufferBudgetTest, APayloadIsCountedAsLongAsItsOwnerLives) {
  const auto budget = BufferBudget::Create(1000);
  auto owner = std::make_shared<int>(0);
  PayloadRef payload = {.data = owner.get(), .size = 40, .owner = owner};
  // The transport may release it after the stream has gone.
  BufferBudget::Share(budget).Charge(payload);
  EXPECT_EQ(budget->held_bytes(), 40);
  EXPECT_EQ(owner.use_count(), 2);
  PayloadRef copy = payload;
  payload.owner.reset();
  EXPECT_EQ(budget->held_bytes(), 40);
  copy.owner.reset();
  EXPECT_EQ(budget->held_bytes(), 0);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(BufferBudgetTest, AStreamWithoutResponsesMayAlwaysTakeAMessage) {
  const auto budget = BufferBudget::Create(1000);
  BufferBudget::Share full(budget), empty(budget);
  const PayloadRef payload = Charged(full, 5000);
  const BufferBudget::Hold hold = budget->Take(5000);
  EXPECT_FALSE(full.MayTakeMore());
  EXPECT_TRUE(empty.MayTakeMore());
}

TEST(BufferBudgetTest, AStreamMayTakeMoreOnceItsResponsesAreReleased) {
  const auto budget = BufferBudget::Create(1000);
  BufferBudget::Share share(budget);
  PayloadRef payload = Charged(share, 1000);
  EXPECT_FALSE(share.MayTakeMore());
  payload.owner.reset();
  EXPECT_TRUE(share.MayTakeMore());
}

TEST(BufferBudgetTest, StreamsThatFillTheirSharesLeaveTheOthersTheirs) {
  constexpr int64_t kLimit = 1000;
  constexpr int64_t kMessage = 5;
  const auto budget = BufferBudget::Create(kLimit);
  std::list<BufferBudget::Share> streams;
  for (int i = 0; i < 10; ++i) streams.emplace_back(budget);
  std::vector<PayloadRef> held;
  for (BufferBudget::Share& stream : streams) {
    int messages = 0;
    for (; stream.MayTakeMore(); ++messages) {
      held.push_back(Charged(stream, kMessage));
    }
    EXPECT_EQ(messages * kMessage, kLimit / 10);
  }
  EXPECT_EQ(budget->held_bytes(), kLimit);
}

TEST(BufferBudgetTest, StreamsThatComeLaterDoNotRaiseTheLimit) {
  constexpr int64_t kLimit = 1000;
  const auto budget = BufferBudget::Create(kLimit);
  std::list<BufferBudget::Share> streams;
  std::vector<PayloadRef> held;
  for (int i = 0; i < 10; ++i) {
    streams.emplace_back(budget);
    while (streams.back().MayTakeMore()) {
      held.push_back(Charged(streams.back(), 5));
    }
  }
  EXPECT_LE(budget->held_bytes(), kLimit + 10 * 5);
}

TEST(BufferBudgetTest, AClosedStreamsShareGoesToTheOthers) {
  const auto budget = BufferBudget::Create(1000);
  BufferBudget::Share stays(budget);
  auto goes = std::make_optional<BufferBudget::Share>(budget);
  const PayloadRef payload = Charged(stays, 600);
  EXPECT_FALSE(stays.MayTakeMore());
  goes.reset();
  EXPECT_TRUE(stays.MayTakeMore());
}

}  // namespace
}  // namespace parasol
