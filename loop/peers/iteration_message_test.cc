#include "loop/peers/iteration_message.h"

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IterationMessage MessageOf(int64_t step, bool stops = false) {
  return {.iteration = {.step = step,
                        .examples = 3,
                        .loss_sum = 1.5,
                        .output_loss_sums = {1, 2}},
          .stops = stops};
}

TEST(IterationMessageTest, WhatProcessesHaveDoneIsAddedUp) {
  const auto all = AddUp({ToBytes(MessageOf(4)), ToBytes(MessageOf(4))});
  ASSERT_OK(all);
  EXPECT_EQ(all->iteration.step, 4);
  EXPECT_EQ(all->iteration.examples, 6);
  EXPECT_EQ(all->iteration.loss_sum, 3);
  EXPECT_THAT(all->iteration.output_loss_sums, ElementsAre(2, 4));
  EXPECT_FALSE(all->stops);
}

TEST(IterationMessageTest, OneThatStopsStopsAll) {
  const auto all = AddUp({ToBytes(MessageOf(4)), ToBytes(MessageOf(4, true))});
  ASSERT_OK(all);
  EXPECT_TRUE(all->stops);
}

TEST(IterationMessageTest, AnotherIterationIsNamed) {
  EXPECT_THAT(AddUp({ToBytes(MessageOf(4)), ToBytes(MessageOf(5))}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("worker/1 ends iteration 5, worker/0 4")));
}

TEST(IterationMessageTest, OtherBytesAreRefused) {
  EXPECT_THAT(AddUp({ToBytes(MessageOf(4)), "x"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("worker/1 ends no iteration")));
}

}  // namespace
}  // namespace parasol
