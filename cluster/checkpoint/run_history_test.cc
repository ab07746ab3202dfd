#include "cluster/checkpoint/run_history.h"

#include <optional>

#include "gtest/gtest.h"

namespace parasol {
namespace {

Evaluation Of(int64_t chief_epoch, int64_t step) {
  Evaluation evaluation;
  evaluation.global_step = step;
  evaluation.chief_epoch = chief_epoch;
  return evaluation;
}

durable::CheckpointManifest Written(const RunHistory& history, int64_t step) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  history.AddTo(manifest);
  return manifest;
}

TEST(RunHistoryTest, ANewRunHasItsOwnersCheckpointsAlone) {
  const RunHistory history(std::nullopt, 7);
  EXPECT_TRUE(history.Has(Of(7, 0)));
  EXPECT_TRUE(history.Has(Of(7, 1 << 30)));
  EXPECT_FALSE(history.Has(Of(6, 1)));
  EXPECT_FALSE(history.Has(Of(8, 1)));
  EXPECT_FALSE(history.Has(Of(0, 1)));
}

// Chief 2 goes back behind chief 1's checkpoint 12 to its checkpoint 10, and
// chief 3 goes on from chief 2's 12.
TEST(RunHistoryTest, AbandonedCheckpointsStayOutOverAllRestarts) {
  const RunHistory first(std::nullopt, 1);
  const RunHistory second(Written(first, 10), 2);
  EXPECT_TRUE(second.Has(Of(1, 10)));
  EXPECT_FALSE(second.Has(Of(1, 12)));
  EXPECT_TRUE(second.Has(Of(2, 12)));
  const RunHistory third(Written(second, 12), 3);
  EXPECT_TRUE(third.Has(Of(1, 10)));
  EXPECT_FALSE(third.Has(Of(1, 11)));
  EXPECT_FALSE(third.Has(Of(1, 12)));
  EXPECT_TRUE(third.Has(Of(2, 12)));
  EXPECT_FALSE(third.Has(Of(2, 13)));
  EXPECT_TRUE(third.Has(Of(3, 13)));
}

// Chief 3 goes back behind all that chief 2 has written.
TEST(RunHistoryTest, AnOwnerOfWhichNothingIsLeftIsNoPart) {
  const RunHistory first(std::nullopt, 1);
  const RunHistory third(Written(first, 10), 3);
  EXPECT_FALSE(third.Has(Of(2, 5)));
}

TEST(RunHistoryTest, CheckpointsOfOlderProgramsCountUpToTheOneGoneOnFrom) {
  durable::CheckpointManifest old;
  old.set_global_step(10);
  const RunHistory history(old, 5);
  EXPECT_TRUE(history.Has(Of(0, 10)));
  EXPECT_FALSE(history.Has(Of(0, 11)));
  const RunHistory next(Written(history, 20), 6);
  EXPECT_TRUE(next.Has(Of(0, 10)));
  EXPECT_FALSE(next.Has(Of(0, 11)));
  EXPECT_TRUE(next.Has(Of(5, 20)));
  EXPECT_TRUE(RunHistory(old).Has(Of(0, 10)));
}

TEST(RunHistoryTest, ACheckpointsHistoryEndsWithIt) {
  const RunHistory second(Written(RunHistory(std::nullopt, 1), 10), 2);
  const RunHistory of(Written(second, 20));
  EXPECT_EQ(of.chief_epoch(), 2);
  EXPECT_TRUE(of.Has(Of(1, 10)));
  EXPECT_TRUE(of.Has(Of(2, 20)));
  EXPECT_FALSE(of.Has(Of(2, 21)));
  EXPECT_FALSE(of.Has(Of(1, 11)));
}

}  // namespace
}  // namespace parasol
