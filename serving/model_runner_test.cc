#include "serving/model_runner.h"

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "serving/batch_queue.h"
#include "serving/serving_metrics.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1000);
const absl::Time kNever = absl::InfiniteFuture();

TEST(BatchQueueTest, RequestsOfUpToTheLimitBecomeABatch) {
  BatchQueue<int> queue(
      {.max_batch = 5, .max_wait = absl::Milliseconds(2), .max_queued = 100});
  EXPECT_EQ(queue.Due(), absl::InfiniteFuture());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Offer(i, 2, kStart, kNever));
  EXPECT_EQ(queue.Due(), absl::InfinitePast());
  EXPECT_THAT(queue.Take(kStart).batch, ElementsAre(0, 1));
  EXPECT_EQ(queue.Due(), kStart + absl::Milliseconds(2));
  EXPECT_THAT(queue.Take(kStart).batch, ElementsAre(2));
  EXPECT_TRUE(queue.empty());
}

TEST(BatchQueueTest, NoRequestWaitsForCompanyBeyondItsDeadline) {
  BatchQueue<int> queue(
      {.max_batch = 5, .max_wait = absl::Seconds(2), .max_queued = 100});
  int patient = 1;
  int hasty = 2;
  queue.Offer(patient, 1, kStart, kStart + absl::Seconds(3));
  EXPECT_EQ(queue.Due(), kStart + absl::Seconds(2));
  queue.Offer(hasty, 1, kStart, kStart + absl::Seconds(1));
  EXPECT_EQ(queue.Due(), absl::InfinitePast());
  EXPECT_THAT(queue.Take(kStart).batch, ElementsAre(1, 2));
}

TEST(BatchQueueTest, ALargeRequestIsABatchOfItsOwn) {
  BatchQueue<int> queue({.max_batch = 5, .max_wait = {}, .max_queued = 6});
  int large = 1;
  int next = 2;
  EXPECT_TRUE(queue.Offer(large, 50, kStart, kNever));
  EXPECT_FALSE(queue.Offer(next, 1, kStart, kNever));
  EXPECT_THAT(queue.Take(kStart).batch, ElementsAre(1));
  EXPECT_TRUE(queue.Offer(next, 1, kStart, kNever));
}

TEST(BatchQueueTest, ExpiredRequestsTakeNoPlaceInABatch) {
  BatchQueue<int> queue({.max_batch = 2, .max_wait = {}, .max_queued = 100});
  for (int i = 0; i < 4; ++i) {
    queue.Offer(i, 1, kStart,
                i < 2 ? kStart + absl::Seconds(1) : kStart + absl::Seconds(9));
  }
  const auto taken = queue.Take(kStart + absl::Seconds(1));
  EXPECT_THAT(taken.expired, ElementsAre(0, 1));
  EXPECT_THAT(taken.batch, ElementsAre(2, 3));
}

Batch Examples(const std::vector<float>& values) {
  Batch batch;
  batch.size = static_cast<int64_t>(values.size());
  batch.dense = {{.shape = {}, .values = values}};
  batch.labels.resize(values.size());
  return batch;
}

class ModelRunnerTest : public ::testing::Test {
 protected:
  // Doubles the values; the first batch waits for is_free_.
  ModelRunner::Compute Doubling() {
    return
        [this](const Batch& batch) -> absl::StatusOr<absl::Span<const float>> {
          if (sizes_.empty()) {
            is_busy_.Notify();
            is_free_.WaitForNotification();
          }
          sizes_.push_back(batch.size);
          outputs_.clear();
          for (const float value : batch.dense[0].values) {
            outputs_.push_back(2 * value);
          }
          return absl::MakeConstSpan(outputs_);
        };
  }

  void AwaitQueued(double examples) {
    while (metrics_.queued_examples.value() != examples) {
      std::this_thread::yield();
    }
  }

  SimulatedClock clock_;
  MetricsRegistry registry_;
  ServingMetrics metrics_{registry_};
  absl::Notification is_busy_;
  absl::Notification is_free_;
  std::vector<int64_t> sizes_;  // of the batches
  std::vector<float> outputs_;
};

TEST_F(ModelRunnerTest, WhatWaitsWhileTheModelIsBusyIsOneBatch) {
  {
    ModelRunner runner(Doubling(), {}, clock_, metrics_);
    std::vector<absl::StatusOr<std::vector<float>>> outputs(
        3, absl::UnknownError("not yet"));
    std::vector<std::thread> callers;
    callers.emplace_back(
        [&] { outputs[0] = runner.Predict(Examples({1}), kNever); });
    is_busy_.WaitForNotification();
    callers.emplace_back([&] {
      outputs[1] = runner.Predict(Examples({2, 3}), kNever);
    });
    AwaitQueued(2);
    callers.emplace_back(
        [&] { outputs[2] = runner.Predict(Examples({4}), kNever); });
    AwaitQueued(3);
    is_free_.Notify();
    for (std::thread& caller : callers) caller.join();
    EXPECT_THAT(outputs[0], IsOkAndHolds(ElementsAre(2)));
    EXPECT_THAT(outputs[1], IsOkAndHolds(ElementsAre(4, 6)));
    EXPECT_THAT(outputs[2], IsOkAndHolds(ElementsAre(8)));
  }
  EXPECT_THAT(sizes_, ElementsAre(1, 3));
}

TEST_F(ModelRunnerTest, OneBadRequestFailsAlone) {
  ModelRunner runner(
      [this, doubling = Doubling()](
          const Batch& batch) -> absl::StatusOr<absl::Span<const float>> {
        for (const float value : batch.dense[0].values) {
          if (value < 0) return absl::InvalidArgumentError("negative");
        }
        return doubling(batch);
      },
      {}, clock_, metrics_);
  std::thread busy([&] { EXPECT_OK(runner.Predict(Examples({1}), kNever)); });
  is_busy_.WaitForNotification();
  std::thread bad([&] {
    EXPECT_THAT(runner.Predict(Examples({-1}), kNever),
                StatusIs(absl::StatusCode::kInvalidArgument));
  });
  AwaitQueued(1);
  std::thread good([&] {
    EXPECT_THAT(runner.Predict(Examples({2, 3}), kNever),
                IsOkAndHolds(ElementsAre(4, 6)));
  });
  AwaitQueued(3);
  is_free_.Notify();
  busy.join();
  bad.join();
  good.join();
}

TEST_F(ModelRunnerTest, TooManyAndTooLateAreRefused) {
  ModelRunner runner(Doubling(), {.max_queued = 2}, clock_, metrics_);
  std::thread busy([&] { EXPECT_OK(runner.Predict(Examples({1}), kNever)); });
  is_busy_.WaitForNotification();
  std::thread late([&] {
    EXPECT_THAT(
        runner.Predict(Examples({1, 2}), clock_.Now() + absl::Seconds(1)),
        StatusIs(absl::StatusCode::kDeadlineExceeded));
  });
  AwaitQueued(2);
  EXPECT_THAT(runner.Predict(Examples({1}), kNever),
              StatusIs(absl::StatusCode::kResourceExhausted));
  clock_.Advance(absl::Seconds(2));
  is_free_.Notify();
  late.join();
  busy.join();
  EXPECT_EQ(metrics_.overloaded.value(), 1);
  EXPECT_EQ(metrics_.expired.value(), 1);
}

TEST(AppendExamplesTest, WeightsOfIdsStayWithTheirIds) {
  Batch joined;
  Batch plain;
  plain.size = 1;
  plain.ids = {{.offsets = {0, 2}, .ids = {5, 6}, .weights = {}}};
  Batch weighted = plain;
  weighted.ids[0].weights = {0.5, 0.25};
  AppendExamples(plain, joined);
  EXPECT_THAT(joined.ids[0].weights, IsEmpty());
  AppendExamples(weighted, joined);
  AppendExamples(plain, joined);
  EXPECT_EQ(joined.size, 3);
  EXPECT_THAT(joined.ids[0].offsets, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(joined.ids[0].weights, ElementsAre(1, 1, 0.5, 0.25, 1, 1));
}

}  // namespace
}  // namespace parasol
