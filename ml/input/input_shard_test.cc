#include "ml/input/input_shard.h"

#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/batch_order.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the examples that a reader sees in its first epoch.
std::vector<int64_t> ExamplesOf(const Selection& selection,
                                const InputShard& shard) {
  BatchOrder order(selection, {shard}, {.batch_size = 1 << 20});
  std::vector<int64_t> examples;
  order.Next(examples);
  return examples;
}

std::vector<int64_t> ExamplesOf(const Selection& selection,
                                job::Dataset::AutoShard policy, int shard,
                                int num_shards) {
  const auto created = InputShard::Create(
      selection, policy, {.shard = shard, .num_shards = num_shards});
  EXPECT_OK(created);
  return ExamplesOf(selection, *created);
}

TEST(ShardingTest, PoliciesSayWhichExamplesAShardHas) {
  const Selection files({0, 2, 2, 5, 6}, nullptr);
  EXPECT_THAT(ExamplesOf(files, job::Dataset::FILE, 0, 2),
              ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ExamplesOf(files, job::Dataset::FILE, 1, 2), ElementsAre(5));
  EXPECT_THAT(ExamplesOf(files, job::Dataset::DATA, 1, 2),
              ElementsAre(1, 3, 5));
  EXPECT_THAT(ExamplesOf(files, job::Dataset::OFF, 1, 2),
              ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ShardingTest, AutoIsFileWhereNoShardWouldBeEmpty) {
  const Selection four({0, 1, 2, 3, 4}, nullptr);
  EXPECT_THAT(ExamplesOf(four, job::Dataset::AUTO, 1, 3), ElementsAre(1));
  const Selection one_empty({0, 4, 4, 8}, nullptr);
  EXPECT_THAT(ExamplesOf(one_empty, job::Dataset::AUTO, 1, 3),
              ElementsAre(1, 4, 7));
  const Selection two({0, 4, 8}, nullptr);
  EXPECT_THAT(ExamplesOf(two, job::Dataset::AUTO, 2, 3), ElementsAre(2, 5));
}

TEST(ShardingTest, ShardsOfEveryPolicyButOffCoverTheSetOnce) {
  const Selection files({0, 7, 8, 8, 30, 41}, nullptr);
  for (const auto policy :
       {job::Dataset::AUTO, job::Dataset::FILE, job::Dataset::DATA}) {
    std::map<int64_t, int> seen;
    for (int shard = 0; shard < 2; ++shard) {
      for (const int64_t i : ExamplesOf(files, policy, shard, 2)) ++seen[i];
    }
    EXPECT_EQ(seen.size(), 41);
    for (const auto& [example, times] : seen) EXPECT_EQ(times, 1) << example;
  }
}

TEST(ShardingTest, OffGivesEveryShardAnotherOrder) {
  const Selection set({0, 100}, nullptr);
  std::vector<std::vector<int64_t>> orders;
  for (int shard = 0; shard < 2; ++shard) {
    ASSERT_OK_AND_ASSIGN(
        const InputShard created,
        InputShard::Create(
            set, job::Dataset::OFF,
            {.shard = shard, .num_shards = 2, .shuffle_buffer = 100}));
    orders.push_back(ExamplesOf(set, created));
  }
  EXPECT_NE(orders[0], orders[1]);
}

TEST(ShardingTest, ImpossibleShardsAreRefused) {
  const Selection two({0, 4, 8}, nullptr);
  const struct {
    job::Dataset::AutoShard policy;
    int shard;
    int num_shards;
    const char* want;
  } cases[] = {
      {job::Dataset::FILE, 0, 3, "has 2 files for 3 workers"},
      {job::Dataset::DATA, 8, 9, "shard 8 of 9 would be empty"},
      {job::Dataset::DATA, 2, 2, "input shard 2 is not in 0 to 1"},
      {job::Dataset::OFF, -1, 2, "input shard -1 is not in 0 to 1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        InputShard::Create(two, c.policy,
                           {.shard = c.shard, .num_shards = c.num_shards}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(ShardingTest, ComplementarySplitsCoverTheSetOnce) {
  job::Split low;
  low.set_to(0.9);
  job::Split high;
  high.set_from(0.9);
  const Selection train({0, 4000, 10000}, &low);
  const Selection test({0, 4000, 10000}, &high);
  EXPECT_EQ(train.size() + test.size(), 10000);
  // 1,000 ± 6 standard deviations.
  EXPECT_NEAR(test.size(), 1000, 180);
  std::map<int64_t, int> seen;
  for (int64_t i = 0; i < train.size(); ++i) ++seen[train[i]];
  for (int64_t i = 0; i < test.size(); ++i) ++seen[test[i]];
  EXPECT_EQ(seen.size(), 10000);
  EXPECT_GE(train[train.file_starts()[1]], 4000);
  EXPECT_LT(train[train.file_starts()[1] - 1], 4000);
}

TEST(ShardingTest, SplitsOfAnotherSeedAreOthers) {
  job::Split split;
  split.set_to(0.5);
  const Selection one({0, 100}, &split);
  split.set_seed(1);
  const Selection other({0, 100}, &split);
  EXPECT_NE(ExamplesOf(one, job::Dataset::DATA, 0, 1),
            ExamplesOf(other, job::Dataset::DATA, 0, 1));
}

// Literals: a job that starts again has to find the same split.
TEST(ShardingTest, SplitIsTheSameOnEveryMachine) {
  job::Split split;
  split.set_to(0.2);
  split.set_seed(7);
  const Selection fifth({0, 40}, &split);
  EXPECT_THAT(ExamplesOf(fifth, job::Dataset::DATA, 0, 1),
              ElementsAre(6, 10, 13, 14, 21, 37));
}

}  // namespace
}  // namespace parasol
