// Jobs whose sparse tables have an admission and an eviction, with all roles in
// one process.
#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/rows/row_tier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/ratings.h"
#include "tests/cluster/strategy_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;
using ::testing::SizeIs;

// In 60 steps of one replica a user occurs 48 times, an item 32 times.
job::Job BoundedJob(int64_t steps, int replicas) {
  job::Job job = RatingsJob(steps);
  job::Model& model = *job.mutable_model();
  model.mutable_sparse_table(0)->mutable_admission()->set_min_count(32 *
                                                                    replicas);
  model.mutable_sparse_table(1)->mutable_admission()->set_min_count(3);
  model.mutable_sparse_table(1)->mutable_eviction()->set_idle_steps(3);
  model.mutable_sparse_table(1)->mutable_eviction()->set_max_rows(1024);
  // LazyAdam leaves rows without gradients alone.
  job.mutable_optimizer()->clear_kind();
  job.mutable_optimizer()->mutable_lazy_adam()->set_learning_rate(0.01);
  model.mutable_sparse_table(1)->mutable_optimizer()->mutable_rowwise_adagrad();
  FillDefaults(job);
  return job;
}

class TableBoundsTest : public StrategyRunsTest {
 protected:
  // The counts of each table's ids without a row.
  std::map<std::string, std::map<uint64_t, uint32_t>> CountsOf(
      const std::string& run) {
    std::map<std::string, std::map<uint64_t, uint32_t>> counts;
    const auto checkpoint = Newest(run);
    EXPECT_TRUE(checkpoint != nullptr);
    for (const auto& table : checkpoint->manifest().table()) {
      auto& of_table = counts[table.name()];
      EXPECT_OK(checkpoint->ReadCountsFor(
          table.name(), {.shard = 0, .num_shards = 1},
          [&](const CountBatch& batch) {
            for (size_t i = 0; i < batch.ids.size(); ++i) {
              EXPECT_TRUE(
                  of_table.emplace(batch.ids[i], batch.counts[i]).second);
            }
            return absl::OkStatus();
          }));
    }
    return counts;
  }
};

TEST_F(TableBoundsTest, EveryStrategyEndsWithTheSameRowsAndCounts) {
  for (const int replicas : {1, 2}) {
    SCOPED_TRACE(replicas);
    const job::Job job = BoundedJob(60, replicas);
    const std::string cluster = absl::StrCat("cluster", replicas),
                      mirrored = absl::StrCat("mirrored", replicas),
                      workers = absl::StrCat("workers", replicas),
                      hybrid = absl::StrCat("hybrid", replicas);
    TrainInCluster(job, replicas, RatingsDirectory(), cluster);
    const Trained want = TrainedBy(cluster);
    const auto counts = CountsOf(cluster);
    // Some ids have rows, and some do not, or not any more.
    EXPECT_THAT(want.tables.at("wide"), SizeIs(AllOf(Gt(0), Lt(100))));
    EXPECT_THAT(want.tables.at("deep"), SizeIs(AllOf(Gt(0), Lt(100))));
    EXPECT_EQ(counts.at("wide").size() + want.tables.at("wide").size(), 100u);
    TrainAlone(job, absl::StrCat("mirrored { ", DevicesOf(replicas), " }"),
               RatingsDirectory(), mirrored);
    TrainByWorkers(job, replicas, RatingsDirectory(), workers);
    TrainByBoth(job, replicas, RatingsDirectory(), hybrid);
    for (const std::string& run : {mirrored, workers, hybrid}) {
      SCOPED_TRACE(run);
      EXPECT_EQ(TrainedBy(run), want);
      EXPECT_EQ(CountsOf(run), counts);
    }
  }
}

// A ps that is stopped leaves with a checkpoint: counts and ages go on from
// there.
TEST_F(TableBoundsTest, APsThatIsReplacedLosesNoCount) {
  job::Job job = BoundedJob(150, /*replicas=*/2);
  MakeSynchronous({.aggregate = 2, .total = 2}, job);
  const auto train = [&](const std::string& run, bool is_disturbed,
                         bool has_tier = false) {
    TestCluster cluster(job, /*num_ps=*/2, /*num_workers=*/2, Directory(run));
    cluster.SetDataDirectory(RatingsDirectory());
    ASSERT_OK(cluster.Start());
    if (is_disturbed) {
      ASSERT_OK(cluster.AwaitStep(20));
      cluster.StopPs(1).IgnoreError();
      ASSERT_OK(cluster.StartPs(1));
    }
    EXPECT_OK(cluster.WaitForChief());
    EXPECT_EQ(has_tier,
              !absl::StrContains(cluster.metrics().Text(),
                                 "table_lookups_total{table=\"deep\"} 0\n"));
  };
  train("calm", false);
  train("disturbed", true);
  // So it is where rows may lie on the disk.
  for (job::SparseTable& table : *job.mutable_model()->mutable_sparse_table()) {
    table.mutable_tier()->set_memory_bytes(RowTier::kSegmentsInMemory *
                                               RowTierOptions().segment_bytes +
                                           (32 << 10));
  }
  train("tiered", true, /*has_tier=*/true);
  for (const std::string run : {"disturbed", "tiered"}) {
    EXPECT_EQ(TrainedBy(run), TrainedBy("calm")) << run;
    EXPECT_EQ(CountsOf(run), CountsOf("calm")) << run;
  }
}

}  // namespace
}  // namespace parasol
