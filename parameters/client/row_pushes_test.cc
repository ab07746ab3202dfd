#include "parameters/client/row_pushes.h"

#include <memory>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

std::shared_ptr<Call> PushTo(RowPushes& pushes, size_t table,
                             size_t operations) {
  const auto call = std::make_shared<Call>();
  call->is_push = true;
  call->completion.Expect(operations);
  pushes.Add(table, call);
  return call;
}

TEST(RowPushesTest, APushIsUnansweredUntilItsLastOperationIs) {
  RowPushes pushes(2);
  EXPECT_FALSE(pushes.AreUnanswered(1));
  const auto call = PushTo(pushes, 1, 2);
  EXPECT_TRUE(pushes.AreUnanswered(1));
  EXPECT_FALSE(pushes.AreUnanswered(0)) << "another table";
  call->completion.Finish(absl::OkStatus());
  EXPECT_TRUE(pushes.AreUnanswered(1));
  call->completion.Finish(absl::UnavailableError("gone"));
  EXPECT_FALSE(pushes.AreUnanswered(1));
}

TEST(RowPushesTest, AnAnswerToALaterPushIsNotOneToAnEarlierPush) {
  RowPushes pushes(1);
  const auto first = PushTo(pushes, 0, 1);
  const auto second = PushTo(pushes, 0, 1);
  second->completion.Finish(absl::OkStatus());
  EXPECT_TRUE(pushes.AreUnanswered(0));
  first->completion.Finish(absl::OkStatus());
  EXPECT_FALSE(pushes.AreUnanswered(0));
}

TEST(RowPushesTest, AFinishedPushIsNotKept) {
  RowPushes pushes(1);
  const auto call = PushTo(pushes, 0, 1);
  call->completion.Finish(absl::OkStatus());
  PushTo(pushes, 0, 1);
  EXPECT_EQ(call.use_count(), 1);
}

}  // namespace
}  // namespace parasol
