#include "worker/store/table/device_tables.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/input/feature/batch.h"
#include "ml/optimizer/testing/update_cases.h"
#include "worker/store/testing/full_device.h"
#include "worker/store/testing/lone_worker.h"
#include "worker/store/testing/table_cases.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Place = LoneWorker::Place;

class DeviceTablesTest : public DeviceTest {
 protected:
  static constexpr int kSteps = 12;

  // Trains one after the other: waits of the second would be the first's, too.
  void ExpectSameBits(const job::Job& job, int batches = 1) {
    LoneWorker on_device(job, device(), Place::kDevice, batches);
    const std::vector<double> losses = Train(on_device, 0, kSteps);
    for (size_t i = 0; i < kTables; ++i) EXPECT_TRUE(on_device.IsOnDevice(i));
    LoneWorker on_host(job, device(), Place::kHost);
    EXPECT_EQ(losses, Train(on_host, 0, kSteps));
    ExpectSame(on_device, on_host);
  }
};

TEST_P(DeviceTablesTest, EachOptimizerHasTheBitsOfTheHost) {
  for (const std::string& optimizer : OptimizersWithBitsOfTheCpu()) {
    ExpectSameBits(JobWith(absl::StrCat("optimizer { ", optimizer, " }")));
    if (HasFailure()) FAIL() << optimizer;
  }
}

TEST_P(DeviceTablesTest, ATableMayHaveOneSlotElementForARow) {
  for (const char* const limits : {"", "clipvalue: .02 clipnorm: .03"}) {
    ExpectSameBits(
        JobWith("optimizer { adam {} }",
                absl::StrCat("optimizer { rowwise_adagrad {} ", limits, " }")));
  }
}

TEST_P(DeviceTablesTest, EachTableIsClippedAsItsOptimizerSays) {
  ExpectSameBits(JobWith("optimizer { adam {} clipvalue: .01 clipnorm: .02 }"));
  ExpectSameBits(
      JobWith("optimizer { adagrad {} clipnorm: .02 "
              "learning_rate_schedule { cosine_decay { decay_steps: 9 } } }",
              "optimizer { nadam {} clipvalue: .02 global_clipnorm: .01 }"));
}

TEST_P(DeviceTablesTest, ATableMayBeFrozenOrHaveARateOfItsOwn) {
  for (const char* const table :
       {"trainable: false", "learning_rate_multiplier: 3",
        "optimizer { nadam {} } learning_rate_multiplier: 3"}) {
    ExpectSameBits(JobWith("optimizer { adam {} clipnorm: .02 }", table));
  }
}

// With two staged batches nothing waits for the end of a step.
TEST_P(DeviceTablesTest, ABatchIsStagedWhileTheLastStepUpdatesTables) {
  ExpectSameBits(JobWith("optimizer { adam {} clipnorm: .05 }"), /*batches=*/2);
}

// The last rows of a block and the first ones of the next one come together,
// and blocks by more and more.
TEST_P(DeviceTablesTest, ATableGrowsOverTheBordersOfItsBlocks) {
  constexpr size_t kRowBytes = 4 * 3 * sizeof(float);
  constexpr size_t kBlocks = 5;
  const job::Job job = ParseJob(kManyRows);
  LoneWorker on_device(job, device(), Place::kDevice, /*batches=*/2);
  for (int step = 0; step < 5; ++step) on_device.Step(step, ManyIds(step, 101));
  LoneWorker on_host(job, device(), Place::kHost);
  for (int step = 0; step < 5; ++step) on_host.Step(step, ManyIds(step, 101));
  ExpectSame(on_device, on_host);
  EXPECT_GT(on_host.Table(0).second.size() * kRowBytes,
            kBlocks * DeviceBlocks::kBlockBytes);
}

// In between one table gets rows that the other has not, and then other
// numbers.
TEST_P(DeviceTablesTest, TablesWithTheSameIdsHaveTheirOwnRows) {
  const job::Job job = ParseJob(kTwoTables);
  LoneWorker on_device(job, device(), Place::kDevice, /*batches=*/2);
  LoneWorker on_host(job, device(), Place::kHost);
  for (LoneWorker* const worker : {&on_device, &on_host}) {
    for (int step = 0; step < 4; ++step) worker->Step(step, ManyIds(step, 11));
    worker->PullRows(1, {3, 1, 2});
    for (int step = 4; step < 8; ++step) worker->Step(step, ManyIds(step, 11));
    worker->PullRows(0, {4});
    for (int step = 8; step < 10; ++step) worker->Step(step, ManyIds(step, 11));
  }
  ExpectSame(on_device, on_host);
}

TEST_P(DeviceTablesTest, HelpersFindTheRowsThatOneThreadFinds) {
  for (const char* const text : {kTwoTables, kManyRows}) {
    const job::Job job = ParseJob(text);
    LoneWorker helped(job, device(), Place::kDevice, /*batches=*/2,
                      {.helpers = 3});
    LoneWorker alone(job, device(), Place::kDevice, /*batches=*/2,
                     {.helpers = 0});
    for (int step = 0; step < 6; ++step) {
      const Batch batch = TwiceTheIds(ManyIds(step, 301));
      EXPECT_EQ(helped.Step(step, batch).loss_sum,
                alone.Step(step, batch).loss_sum);
    }
    ExpectSame(helped, alone);
  }
}

TEST_P(DeviceTablesTest, RowsGoFromTheDeviceToTheHostAndBack) {
  const job::Job job = JobWith("optimizer { adam { amsgrad: true } }");
  LoneWorker first(job, device(), Place::kDevice);
  Train(first, 0, 4);
  LoneWorker on_host(job, device(), Place::kHost);
  on_host.Restore(first);
  ExpectSame(on_host, first);
  Train(on_host, 4, 8);
  LoneWorker on_device(job, device(), Place::kDevice);
  on_device.Restore(on_host);
  ExpectSame(on_device, on_host);
  Train(on_device, 8, kSteps);
  Train(first, 4, kSteps);
  ExpectSame(on_device, first);
}

TEST_P(DeviceTablesTest, ATableThatStartsAgainHasNoRows) {
  const job::Job job = JobWith("optimizer { adam {} }");
  LoneWorker worker(job, device(), Place::kDevice);
  const std::vector<double> losses = Train(worker, 0, 3);
  worker.StartAgain();
  for (size_t table = 0; table < kTables; ++table) {
    EXPECT_THAT(worker.Table(table).second, IsEmpty());
    EXPECT_EQ(worker.Table(table).first, 0);
  }
  EXPECT_EQ(Train(worker, 0, 3), losses);
}

TEST_P(DeviceTablesTest, APullMakesRowsAsOnTheHost) {
  const job::Job job = JobWith("optimizer { adam {} }");
  LoneWorker on_device(job, device(), Place::kDevice);
  LoneWorker on_host(job, device(), Place::kHost);
  const std::vector<uint64_t> ids = {5, uint64_t{1} << 63, 5, 0};
  EXPECT_EQ(on_device.PullRows(kBags, ids), on_host.PullRows(kBags, ids));
  EXPECT_THAT(on_device.Table(kBags).second, SizeIs(3));
  Train(on_device, 0, 3);
  Train(on_host, 0, 3);
  EXPECT_EQ(on_device.PullRows(kBags, ids), on_host.PullRows(kBags, ids));
}

TEST_P(DeviceTablesTest, AnEvaluationReadsTheRowsThere) {
  const job::Job job = JobWith("optimizer { adam {} }");
  LoneWorker on_device(job, device(), Place::kDevice);
  LoneWorker on_host(job, device(), Place::kHost);
  for (LoneWorker* worker : {&on_device, &on_host}) Train(*worker, 0, 5);
  EXPECT_EQ(on_device.Evaluate(BatchOf(50)), on_host.Evaluate(BatchOf(50)));
  for (LoneWorker* worker : {&on_device, &on_host}) Train(*worker, 5, 9);
  ExpectSame(on_device, on_host);
}

TEST_P(DeviceTablesTest, RowsThatAreThereOrHaveAnotherSizeAreRefused) {
  DeviceTable::Options options = {.name = "t", .width = 2};
  options.initializer.mutable_zeros();
  const auto adagrad =
      *MakeOptimizer(ParseJob("model {} optimizer { adagrad {} }").optimizer());
  RowMemory memory;
  const auto table = *DeviceTable::Create(options, *adagrad, memory, device());
  const std::vector<uint64_t> ids = {7, 9};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_OK(table->Insert({.updates = 3, .ids = ids, .rows = rows}));
  EXPECT_EQ(table->updates(), 3);
  const std::vector<uint64_t> again = {8, 9};
  EXPECT_THAT(
      table->Insert({.updates = 3, .ids = again, .rows = rows}),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("table t: row 9")));
  const std::vector<uint64_t> twice = {12, 12};
  EXPECT_THAT(
      table->Insert({.updates = 4, .ids = twice, .rows = rows}),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("table t: row 12")));
  EXPECT_EQ(table->updates(), 3);
  EXPECT_THAT(table->Insert({.ids = ids, .rows = {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 rows of 4 float32")));
  EXPECT_EQ(table->rows(), 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTablesTest,
                         testing::Values(kLazyCopies, "cuda:0", kRecording,
                                         kCudaGraphs),
                         DeviceName);

// As in ATableGrowsOverTheBordersOfItsBlocks. Where it ends up is a matter of
// speed alone.
TEST(FullDeviceTest, ATableThatDoesNotFitGoesToTheHost) {
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2);
  for (int step = 0; step < 3; ++step) worker.Step(step, ManyIds(step, 101));
  EXPECT_TRUE(worker.IsOnDevice(0));
  device.LeaveFree(DeviceBlocks::kBlockBytes / 2);
  testing::internal::CaptureStderr();
  for (int step = 3; step < 9; ++step) worker.Step(step, ManyIds(step, 101));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("table rows: its rows don't fit in the memory of"));
  EXPECT_FALSE(worker.IsOnDevice(0));
  LoneWorker on_host(job, device, Place::kHost);
  device.LeaveFree(SIZE_MAX);
  for (int step = 0; step < 9; ++step) on_host.Step(step, ManyIds(step, 101));
  ExpectSame(worker, on_host);
}

// One table goes to the host, the others stay: both kinds are in one step.
TEST(FullDeviceTest, OtherTablesStay) {
  const job::Job job = JobWith("optimizer { adam {} clipnorm: .05 }");
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice);
  Train(worker, 0, 4);
  // More than have room in the blocks that are there.
  std::vector<uint64_t> ids(9'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1'000'000 + i;
  device.LeaveFree(0);
  worker.PullRows(kBags, ids);
  device.LeaveFree(SIZE_MAX);
  EXPECT_FALSE(worker.IsOnDevice(kBags));
  EXPECT_TRUE(worker.IsOnDevice(kBags - 1));
  Train(worker, 4, 12);
  LoneWorker on_host(job, device, Place::kHost);
  Train(on_host, 0, 4);
  on_host.PullRows(kBags, ids);
  Train(on_host, 4, 12);
  ExpectSame(worker, on_host);
}

// The tables take all that there is, but for the reserve.
TEST(FullDeviceTest, WhatElseNeedsMemoryHasTheReserve) {
  constexpr size_t kReserve = 4 * DeviceBlocks::kBlockBytes;
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2,
                    {.reserve_bytes = kReserve});
  for (int step = 0; step < 6; ++step) worker.Step(step, ManyIds(step, 101));
  ASSERT_TRUE(worker.IsOnDevice(0));
  device.LeaveFree(0);
  // More ids than ever before, all of which have rows.
  const Batch larger = TwiceTheIds(ManyIds(5, 101));
  worker.Step(6, larger);
  EXPECT_TRUE(worker.IsOnDevice(0));
  LoneWorker on_host(job, device, Place::kHost);
  device.LeaveFree(SIZE_MAX);
  for (int step = 0; step < 6; ++step) on_host.Step(step, ManyIds(step, 101));
  on_host.Step(6, larger);
  ExpectSame(worker, on_host);
}

TEST(FullDeviceTest, RowsOfACheckpointThatDoNotFitGoToTheHost) {
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker on_host(job, device, Place::kHost);
  for (int step = 0; step < 3; ++step) on_host.Step(step, ManyIds(step, 101));
  LoneWorker worker(job, device, Place::kDevice);
  device.LeaveFree(3 * DeviceBlocks::kBlockBytes);
  worker.Restore(on_host);
  EXPECT_FALSE(worker.IsOnDevice(0));
  ExpectSame(worker, on_host);
}

// The rows of a resumed run are there before its first pass has any memory.
TEST(FullDeviceTest, TheFirstPassBehindACheckpointFindsRoom) {
  const job::Job job = JobWith("optimizer { adam { } clipnorm: .05 }");
  FullDevice device;
  LoneWorker on_host(job, device, Place::kHost);
  // More than the other tables have.
  std::vector<uint64_t> ids(9'000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 1'000'000 + i;
  on_host.PullRows(kBags, ids);
  Train(on_host, 0, 3);
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2);
  worker.Restore(on_host);
  for (size_t i = 0; i < kTables; ++i) ASSERT_TRUE(worker.IsOnDevice(i));
  testing::internal::CaptureStderr();
  std::vector<double> losses = {
      worker.Step(3, BatchOf(3), [&] { device.LeaveFree(0); }).loss_sum};
  for (const double loss : Train(worker, 4, 9)) losses.push_back(loss);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("table bags: its rows don't fit in the memory of"));
  for (size_t i = 0; i < kTables; ++i) {
    EXPECT_EQ(worker.IsOnDevice(i), i != kBags) << i;
  }
  device.LeaveFree(SIZE_MAX);
  EXPECT_EQ(losses, Train(on_host, 3, 9));
  ExpectSame(worker, on_host);
}

// Even the batch does not fit, and the reserve is not enough.
TEST(FullDeviceTest, ABatchFindsRoom) {
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice, /*batches=*/2,
                    {.reserve_bytes = 1});
  for (int step = 0; step < 3; ++step) worker.Step(step, ManyIds(step, 101));
  ASSERT_TRUE(worker.IsOnDevice(0));
  device.LeaveFree(0);
  Batch larger = ManyIds(2, 101);
  for (int i = 0; i < 4; ++i) larger = TwiceTheIds(larger);
  worker.Step(3, larger);
  EXPECT_FALSE(worker.IsOnDevice(0));
  LoneWorker on_host(job, device, Place::kHost);
  device.LeaveFree(SIZE_MAX);
  for (int step = 0; step < 3; ++step) on_host.Step(step, ManyIds(step, 101));
  on_host.Step(3, larger);
  ExpectSame(worker, on_host);
}

// The reserve is there when a checkpoint's rows are: what it leaves is enough.
TEST(FullDeviceTest, AnEvaluationFindsRoom) {
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker on_host(job, device, Place::kHost);
  for (int step = 0; step < 3; ++step) on_host.Step(step, ManyIds(step, 101));
  const double loss = on_host.Evaluate(ManyIds(3, 101));
  for (const bool has_reserve : {false, true}) {
    LoneWorker worker(
        job, device, Place::kDevice, /*batches=*/1,
        {.reserve_bytes =
             has_reserve ? 4 * DeviceBlocks::kBlockBytes : SIZE_MAX});
    worker.Restore(on_host);
    if (has_reserve) device.LeaveFree(0);
    const auto fill = [&] { device.LeaveFree(has_reserve ? 9'999 : 0); };
    EXPECT_EQ(worker.Evaluate(ManyIds(3, 101), fill), loss);
    EXPECT_EQ(worker.IsOnDevice(0), has_reserve);
    device.LeaveFree(SIZE_MAX);
    ExpectSame(worker, on_host);
  }
}

// All tables go in vain, but for the one without rows.
TEST(FullDeviceTest, AModelThatDoesNotFitWithoutTablesIsAnError) {
  const job::Job job = JobWith("optimizer { adam {} }");
  FullDevice device;
  LoneWorker worker(job, device, Place::kDevice);
  Train(worker, 0, 3);
  device.RefuseAll();
  const Batch batch = BatchOf(0);
  const auto staged = worker.model().NewStagedBatch();
  EXPECT_THAT(worker.model().Stage(batch, *staged),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("out of memory")));
  for (size_t i = 0; i < kTables; ++i) {
    EXPECT_EQ(worker.IsOnDevice(i), i == kSpare) << i;
  }
}

// The rows of a table that is given up may still be on their way.
TEST(FullDeviceTest, NoMemoryIsGivenBackWhileItIsCopiedTo) {
  const job::Job job = ParseJob(kManyRows);
  FullDevice device;
  LoneWorker on_host(job, device, Place::kHost);
  on_host.Step(0, ManyIds(0, 101));
  LoneWorker worker(job, device, Place::kDevice);
  worker.Restore(on_host);
  worker.StartAgain();
  EXPECT_EQ(device.freed_in_use(), 0);
}

}  // namespace
}  // namespace parasol
