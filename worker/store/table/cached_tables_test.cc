// Tables of which the device has the rows used last: every step of these tests
// brings rows, and writes others back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/device/testing/lazy_copy_device.h"
#include "ml/input/feature/batch.h"
#include "ml/optimizer/testing/update_cases.h"
#include "worker/store/table/device_tables.h"
#include "worker/store/testing/full_device.h"
#include "worker/store/testing/lone_worker.h"
#include "worker/store/testing/table_cases.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Place = LoneWorker::Place;

constexpr int kSteps = 14;

// Ids of which few are in most batches, and most in few.
IdFeature SkewedIds(int64_t examples, int64_t ids_per_example, uint32_t seed) {
  std::minstd_rand random(seed);
  IdFeature feature = {.offsets = {0}};
  for (int64_t i = 0; i < examples; ++i) {
    for (int64_t j = 0; j < ids_per_example; ++j) {
      feature.ids.push_back(random() % (random() % 4 == 0 ? 300 : 6));
    }
    feature.offsets.push_back(static_cast<int32_t>(feature.ids.size()));
  }
  return feature;
}

// As BatchOf(), with ids that come back after some steps.
Batch SkewedBatch(int step) {
  Batch batch = BatchOf(step);
  const bool has_bags = step % 4 != 3;
  batch.ids[0] = SkewedIds(batch.size, 2, 3 * step + 1);
  batch.ids[1] = SkewedIds(batch.size, has_bags ? 4 : 0, 3 * step + 2);
  batch.ids[2] = SkewedIds(batch.size, has_bags ? 3 : 0, 3 * step + 3);
  return batch;
}

std::vector<double> TrainSkewed(LoneWorker& worker, int first, int end) {
  std::vector<double> losses;
  for (int step = first; step < end; ++step) {
    losses.push_back(worker.Step(step, SkewedBatch(step)).loss_sum);
  }
  return losses;
}

// A limit that the rows of a batch keep, and the rows of all steps don't. It
// has the same numbers of rows whatever the number of slots.
constexpr int64_t kLimitBytes = 4 * 200;

job::Job WithLimit(job::Job job, int64_t bytes = kLimitBytes) {
  const auto optimizer = *MakeOptimizer(job.optimizer());
  job.mutable_worker()->set_max_device_table_bytes(
      bytes * (1 + optimizer->slot_names().size()));
  return job;
}

// A narrow table may have got enough of the others' memory.
void ExpectCached(const LoneWorker& worker) {
  EXPECT_TRUE(worker.IsCached(kDeep));
  EXPECT_TRUE(worker.IsCached(kBags));
  for (size_t i = 0; i < kTables; ++i) EXPECT_TRUE(worker.IsOnDevice(i)) << i;
}

class CachedTablesTest : public DeviceTest {
 protected:
  // Trains one after the other: waits of the second would be the first's, too.
  void ExpectSameBits(const job::Job& job, int batches = 1,
                      const DeviceTables::Options& options = {}) {
    LoneWorker cached(WithLimit(job), device(), Place::kDevice, batches,
                      options);
    const std::vector<double> losses = TrainSkewed(cached, 0, kSteps);
    ExpectCached(cached);
    EXPECT_GT(cached.tables().TakeCacheUse().misses, 100);
    LoneWorker on_host(job, device(), Place::kHost);
    EXPECT_EQ(losses, TrainSkewed(on_host, 0, kSteps));
    ExpectSame(cached, on_host);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, CachedTablesTest,
                         testing::Values(kLazyCopies, "cuda:0", kRecording,
                                         kCudaGraphs),
                         DeviceName);

// Returns those that leave rows without gradients alone.
std::vector<std::string> CachingOptimizers() {
  std::vector<std::string> caching;
  for (const std::string& text : OptimizersWithBitsOfTheCpu()) {
    if ((*MakeOptimizer(ParseOptimizer(text)))->other_rows() ==
        Optimizer::OtherRows::kUntouched) {
      caching.push_back(text);
    }
  }
  return caching;
}

TEST_P(CachedTablesTest, EachOptimizerHasTheBitsOfTheHost) {
  EXPECT_THAT(CachingOptimizers(), SizeIs(testing::Gt(8)));
  for (const std::string& optimizer : CachingOptimizers()) {
    ExpectSameBits(JobWith(absl::StrCat("optimizer { ", optimizer, " }")));
    if (HasFailure()) FAIL() << optimizer;
  }
}

TEST_P(CachedTablesTest, ATableMayHaveOneSlotElementForARow) {
  ExpectSameBits(
      JobWith("optimizer { adagrad {} }", "optimizer { rowwise_adagrad {} }"));
}

TEST_P(CachedTablesTest, GradientsAreClippedAsOnTheHost) {
  ExpectSameBits(
      JobWith("optimizer { lazy_adam {} clipvalue: .01 clipnorm: .02 }"));
}

TEST_P(CachedTablesTest, ATableMayBeFrozenOrHaveARateOfItsOwn) {
  for (const char* const table :
       {"trainable: false", "learning_rate_multiplier: 3"}) {
    ExpectSameBits(JobWith("optimizer { adagrad {} }", table));
  }
}

// With two staged batches nothing waits for the end of a step.
TEST_P(CachedTablesTest, ABatchIsStagedWhileTheLastStepUpdatesTables) {
  ExpectSameBits(JobWith("optimizer { lazy_adam {} }"), /*batches=*/2);
}

TEST_P(CachedTablesTest, RowsThatExceedTheBufferGoInRounds) {
  ExpectSameBits(JobWith("optimizer { adagrad {} }"), /*batches=*/2,
                 {.swap_bytes = 256});
}

// The windows are so short that it leaves in the midst of the steps.
TEST_P(CachedTablesTest, ATableThatIsNotWorthItGoesToTheHostWithTheSameBits) {
  const job::Job job = JobWith("optimizer { lazy_adam {} clipnorm: .02 }");
  constexpr int kBatches = 2;
  LoneWorker cached(
      WithLimit(job), device(), Place::kDevice, kBatches,
      {.worth = {.batches = 2, .windows = 2, .least_share = 1.01, .rise = 1}});
  testing::internal::CaptureStderr();
  const std::vector<double> losses = TrainSkewed(cached, 0, kSteps);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("table deep: of the rows of its last 4 batches "),
                    HasSubstr("which is worth it from 101 % on")));
  EXPECT_FALSE(cached.IsOnDevice(kDeep));
  EXPECT_FALSE(cached.IsOnDevice(kBags));
  LoneWorker on_host(job, device(), Place::kHost);
  EXPECT_EQ(losses, TrainSkewed(on_host, 0, kSteps));
  ExpectSame(cached, on_host);
}

TEST_P(CachedTablesTest, ATableThatIsWorthItStays) {
  LoneWorker cached(
      WithLimit(JobWith("optimizer { adagrad {} }")), device(), Place::kDevice,
      /*batches=*/1,
      {.worth = {.batches = 2, .windows = 2, .least_share = .1, .rise = 0}});
  TrainSkewed(cached, 0, kSteps);
  ExpectCached(cached);
}

TEST_P(CachedTablesTest, RowsGoFromACachedTableToTheHostAndBack) {
  const job::Job job = JobWith("optimizer { lazy_adam { amsgrad: true } }");
  LoneWorker first(WithLimit(job), device(), Place::kDevice);
  TrainSkewed(first, 0, 5);
  LoneWorker on_host(job, device(), Place::kHost);
  on_host.Restore(first);
  ExpectSame(on_host, first);
  TrainSkewed(on_host, 5, 9);
  // Tables that are read first leave room for those behind them.
  LoneWorker cached(WithLimit(job, 4 * 300), device(), Place::kDevice);
  cached.Restore(on_host);
  ExpectSame(cached, on_host);
  TrainSkewed(cached, 9, kSteps);
  ExpectCached(cached);
  TrainSkewed(first, 5, kSteps);
  ExpectSame(cached, first);
}

TEST_P(CachedTablesTest, ATableThatStartsAgainHasNoRows) {
  const job::Job job = WithLimit(JobWith("optimizer { adagrad {} }"));
  LoneWorker worker(job, device(), Place::kDevice);
  const std::vector<double> losses = TrainSkewed(worker, 0, 8);
  ExpectCached(worker);
  worker.StartAgain();
  for (size_t table = 0; table < kTables; ++table) {
    EXPECT_THAT(worker.Table(table).second, IsEmpty());
    EXPECT_FALSE(worker.IsCached(table));
  }
  EXPECT_EQ(TrainSkewed(worker, 0, 8), losses);
}

TEST_P(CachedTablesTest, APullMakesRowsAsOnTheHost) {
  const job::Job job = JobWith("optimizer { adagrad {} }");
  LoneWorker cached(WithLimit(job), device(), Place::kDevice);
  LoneWorker on_host(job, device(), Place::kHost);
  TrainSkewed(cached, 0, 8);
  TrainSkewed(on_host, 0, 8);
  std::vector<uint64_t> ids = {uint64_t{1} << 63, 1'000'000};
  for (uint64_t id = 0; id < 300; ++id) ids.push_back(id);
  EXPECT_EQ(cached.PullRows(kBags, ids), on_host.PullRows(kBags, ids));
  TrainSkewed(cached, 8, kSteps);
  TrainSkewed(on_host, 8, kSteps);
  ExpectSame(cached, on_host);
}

// Its rows take the seats of others between two steps.
TEST_P(CachedTablesTest, AnEvaluationReadsTheSameRows) {
  const job::Job job = JobWith("optimizer { lazy_adam {} }");
  LoneWorker cached(WithLimit(job), device(), Place::kDevice);
  LoneWorker on_host(job, device(), Place::kHost);
  for (int step = 0; step < kSteps; step += 3) {
    for (LoneWorker* worker : {&cached, &on_host}) {
      TrainSkewed(*worker, step, step + 3);
    }
    EXPECT_EQ(cached.Evaluate(SkewedBatch(50 + step)),
              on_host.Evaluate(SkewedBatch(50 + step)));
    ExpectSame(cached, on_host);
  }
  ExpectCached(cached);
}

// A batch with more rows than a table has seats.
TEST_P(CachedTablesTest, ATableThatABatchDoesNotFitGoesToTheHost) {
  const job::Job job = JobWith("optimizer { adagrad {} }");
  const Batch large = [] {
    Batch batch = BatchOf(8);
    batch.ids[1] = IdsOf(batch.size, 60, /*first=*/10, /*distinct=*/401);
    batch.ids[1].weights.clear();
    return batch;
  }();
  LoneWorker worker(WithLimit(job), device(), Place::kDevice);
  TrainSkewed(worker, 0, 8);
  ExpectCached(worker);
  testing::internal::CaptureStderr();
  worker.Step(8, large);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("table bags: its rows don't fit in the memory of"));
  EXPECT_FALSE(worker.IsOnDevice(kBags));
  EXPECT_TRUE(worker.IsCached(kDeep));
  TrainSkewed(worker, 9, kSteps);
  LoneWorker on_host(job, device(), Place::kHost);
  TrainSkewed(on_host, 0, 8);
  on_host.Step(8, large);
  TrainSkewed(on_host, 9, kSteps);
  ExpectSame(worker, on_host);
}

// Each row of a table would have to change in each step.
TEST_P(CachedTablesTest, AnOptimizerThatMovesAllRowsHasItsTableOnTheHost) {
  for (const char* const optimizer : {"adam {}", "nadam {}"}) {
    const job::Job job = JobWith(absl::StrCat("optimizer { ", optimizer, " }"));
    LoneWorker worker(WithLimit(job), device(), Place::kDevice);
    testing::internal::CaptureStderr();
    TrainSkewed(worker, 0, 8);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("table bags: its rows don't fit"),
                      Not(HasSubstr("were used last"))));
    EXPECT_FALSE(worker.IsOnDevice(kBags));
    LoneWorker on_host(job, device(), Place::kHost);
    TrainSkewed(on_host, 0, 8);
    ExpectSame(worker, on_host);
  }
}

constexpr char kRows[] = R"(
  model {
    input { name: "ids" ids {} }
    sparse_table { name: "rows" width: 4 }
    layer { input: "ids" embedding_bag { table: "rows" } }
    loss { sparse_categorical_crossentropy {} }
  }
  optimizer { sgd {} }
)";

// An example for each id of `first` and `second`, and those that follow each.
Batch RowsOf(uint64_t first, uint64_t second, int64_t examples) {
  Batch batch = {.size = examples, .ids = {IdFeature{.offsets = {0}}}};
  for (int64_t i = 0; i < examples / 2; ++i) {
    batch.ids[0].ids.push_back(first + i);
    batch.ids[0].ids.push_back(second + i);
  }
  for (int64_t i = 0; i < examples; ++i) {
    batch.ids[0].offsets.push_back(static_cast<int32_t>(i + 1));
    batch.labels.push_back(i % 4);
  }
  return batch;
}

// The hand goes around twice for the last batch: all rows, the batch's too,
// have a second chance.
TEST_P(CachedTablesTest, TheRowsOfABatchStayThoughTheyHaveHadTheirChance) {
  constexpr int64_t kSeats = 16;
  job::Job job = ParseJob(kRows);
  job.mutable_worker()->set_max_device_table_bytes(kSeats * 4 * sizeof(float));
  LoneWorker cached(job, device(), Place::kDevice);
  LoneWorker on_host(job, device(), Place::kHost);
  const std::vector<Batch> batches = {
      RowsOf(0, 8, kSeats), RowsOf(0, 100, kSeats), RowsOf(0, 100, kSeats),
      RowsOf(0, 200, kSeats)};
  for (LoneWorker* worker : {&cached, &on_host}) {
    for (size_t step = 0; step < batches.size(); ++step) {
      worker->Step(static_cast<int>(step), batches[step]);
    }
  }
  EXPECT_TRUE(cached.IsCached(0));
  ExpectSame(cached, on_host);
}

// What a device that was lost answers to copies.
class LostDevice : public LazyCopyDevice {
 public:
  void LoseAfter(int copies) { copies_ = copies; }

 protected:
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    if (copies_ == 0) return absl::UnavailableError("lost");
    if (copies_ > 0) --copies_;
    return LazyCopyDevice::CopyBytes(stream, from, to, bytes);
  }

 private:
  int copies_ = -1;  // that it still makes; negative: all
};

TEST(LostDeviceTest, ASwapEndsWithTheErrorOfTheDevice) {
  const job::Job job = WithLimit(JobWith("optimizer { adagrad {} }"));
  // Copies of rows to the device, of rows back, and of the batch.
  for (const int copies : {0, 1, 2}) {
    LostDevice device;
    LoneWorker worker(job, device, Place::kDevice);
    TrainSkewed(worker, 0, 8);
    ExpectCached(worker);
    device.LoseAfter(copies);
    const Batch batch = SkewedBatch(8);
    const auto staged = worker.model().NewStagedBatch();
    EXPECT_THAT(worker.model().Stage(batch, *staged),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
    device.LoseAfter(-1);
  }
}

TEST(FullDeviceTest, ATableThatDoesNotFitIsCached) {
  const job::Job job = JobWith("optimizer { adagrad {} }");
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2);
  Train(worker, 0, 2);
  device.LeaveFree(DeviceBlocks::kBlockBytes / 2);
  // More than have room in the blocks that are there.
  std::vector<uint64_t> ids(9'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1'000'000 + i;
  testing::internal::CaptureStderr();
  worker.PullRows(kBags, ids);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("table bags: its "), HasSubstr(" of memory")));
  EXPECT_TRUE(worker.IsCached(kBags));
  EXPECT_TRUE(worker.IsOnDevice(kBags - 1));
  TrainSkewed(worker, 2, kSteps);
  EXPECT_TRUE(worker.IsCached(kBags));
  device.LeaveFree(SIZE_MAX);
  LoneWorker on_host(job, device, Place::kHost);
  Train(on_host, 0, 2);
  on_host.PullRows(kBags, ids);
  TrainSkewed(on_host, 2, kSteps);
  ExpectSame(worker, on_host);
}

// Even the batch does not fit.
TEST(FullDeviceTest, ACachedTableMakesRoomForABatch) {
  job::Job job = ParseJob(kManyRows);
  job.mutable_optimizer()->mutable_adagrad();
  FillDefaults(job);
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2,
                    {.reserve_bytes = 1});
  for (int step = 0; step < 6; ++step) worker.Step(step, ManyIds(step, 101));
  ASSERT_TRUE(worker.IsOnDevice(0));
  ASSERT_FALSE(worker.IsCached(0));
  device.LeaveFree(0);
  Batch larger = ManyIds(5, 101);
  for (int i = 0; i < 4; ++i) larger = TwiceTheIds(larger);
  worker.Step(6, larger);
  EXPECT_TRUE(worker.IsCached(0));
  for (int step = 7; step < 9; ++step) worker.Step(step, ManyIds(step, 101));
  EXPECT_TRUE(worker.IsCached(0));
  EXPECT_EQ(device.freed_in_use(), 0);
  LoneWorker on_host(job, device, Place::kHost);
  device.LeaveFree(SIZE_MAX);
  for (int step = 0; step < 6; ++step) on_host.Step(step, ManyIds(step, 101));
  on_host.Step(6, larger);
  for (int step = 7; step < 9; ++step) on_host.Step(step, ManyIds(step, 101));
  ExpectSame(worker, on_host);
}

}  // namespace
}  // namespace parasol
