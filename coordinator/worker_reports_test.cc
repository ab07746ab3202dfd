#include "coordinator/worker_reports.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace parasol {
namespace {

// A heartbeat of process 7 with the totals of its first epochs.
wire::HeartbeatRequest Totals(const std::vector<EpochLosses::Sums>& epochs) {
  wire::HeartbeatRequest heartbeat;
  heartbeat.mutable_task()->set_role("worker");
  heartbeat.mutable_task()->set_incarnation(7);
  for (size_t i = 0; i < epochs.size(); ++i) {
    wire::EpochLoss* loss = heartbeat.add_epoch_loss();
    loss->set_epoch(static_cast<int64_t>(i));
    loss->set_loss_sum(epochs[i].loss_sum);
    loss->set_examples(epochs[i].examples);
    heartbeat.set_loss_sum(heartbeat.loss_sum() + epochs[i].loss_sum);
    heartbeat.set_loss_examples(heartbeat.loss_examples() + epochs[i].examples);
  }
  return heartbeat;
}

// Returns the sums at the end of the second epoch.
EpochLosses::Sums AtTheEnd(WorkerReports& reports) {
  reports.epochs().Reach(20, CurvePoints(10, 0), std::nullopt,
                         absl::UnixEpoch());
  return reports.epochs().ends().back().sums;
}

TEST(WorkerReportsTest, TotalsOfANewProcessCountFromItsFirstReportOn) {
  WorkerReports reports(0);
  reports.Begin(7);
  reports.Keep(Totals({{.loss_sum = 8, .examples = 4}}));
  reports.Keep(
      Totals({{.loss_sum = 8, .examples = 4}, {.loss_sum = 2, .examples = 4}}));
  reports.Keep(Totals({{.loss_sum = 8, .examples = 4}}));  // late
  EXPECT_EQ(reports.loss_sum(), 10);
  EXPECT_EQ(AtTheEnd(reports).loss_sum, 10);
  EXPECT_EQ(AtTheEnd(reports).examples, 8);
}

TEST(WorkerReportsTest, WhatWasDoneForAnotherChiefDoesNotCount) {
  WorkerReports reports(0);
  reports.Keep(Totals({{.loss_sum = 8, .examples = 4}}));
  reports.Keep(
      Totals({{.loss_sum = 9, .examples = 5}, {.loss_sum = 2, .examples = 4}}));
  EXPECT_EQ(reports.loss_sum(), 3);
  EXPECT_EQ(AtTheEnd(reports).loss_sum, 3);
  EXPECT_EQ(AtTheEnd(reports).examples, 5);
}

TEST(WorkerReportsTest, RecordedValuesOfAllWorkersAreAdded) {
  const auto heartbeat = [](uint64_t incarnation, double sum, int64_t count) {
    wire::HeartbeatRequest request;
    request.mutable_task()->set_role("worker");
    request.mutable_task()->set_incarnation(incarnation);
    wire::RecordedValues& reward = *request.add_recorded();
    reward.set_name("reward");
    reward.set_sum(sum);
    reward.set_count(count);
    return request;
  };
  WorkerReports reports(0);
  reports.Begin(7);
  reports.Begin(8);
  reports.Keep(heartbeat(7, 10, 4));
  reports.Keep(heartbeat(8, 1, 2));
  reports.Keep(heartbeat(7, 12, 5));
  reports.Keep(heartbeat(7, 10, 4));  // late
  // Most of it was recorded for another chief.
  reports.Keep(heartbeat(9, 100, 50));
  reports.Keep(heartbeat(9, 103, 51));
  ASSERT_EQ(reports.recorded().size(), 1u);
  EXPECT_EQ(reports.recorded().at("reward").sum, 16);
  EXPECT_EQ(reports.recorded().at("reward").count, 8);
}

// A worker that goes on after such a loss (non_finite_loss: CONTINUE).
// Steps are seen from the step at which the last such worker has come, not from
// a worker's that no chief has known, or that comes back to the same chief.
TEST(WorkerReportsTest, AWorkerOfAnotherChiefBringsStepsThatAreNotSeen) {
  const auto reach = [](WorkerReports& reports, int64_t step) {
    reports.epochs().Reach(step, CurvePoints(10, 0), std::nullopt,
                           absl::UnixEpoch());
    return reports.epochs().seen_from();
  };
  WorkerReports reports(20);
  EXPECT_EQ(reach(reports, 20), 20);
  reports.Keep(Totals({{.loss_sum = 8, .examples = 4}}));
  EXPECT_EQ(reach(reports, 23), 23);
  reports.Keep(Totals({{.loss_sum = 9, .examples = 8}}));
  EXPECT_EQ(reach(reports, 26), 23);
  WorkerReports with_new(20);
  EXPECT_EQ(reach(with_new, 20), 20);
  with_new.Begin(7);
  with_new.Keep(Totals({{.loss_sum = 8, .examples = 4}}));
  EXPECT_EQ(reach(with_new, 23), 20);
}

TEST(WorkerReportsTest, ALossThatIsNotFiniteSpoilsNoOtherEpoch) {
  WorkerReports reports(0);
  reports.Begin(7);
  wire::HeartbeatRequest heartbeat =
      Totals({{.loss_sum = 8, .examples = 4}, {.loss_sum = 2, .examples = 4}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  heartbeat.set_loss_sum(nan);
  heartbeat.mutable_epoch_loss(0)->set_loss_sum(nan);
  reports.Keep(heartbeat);
  EXPECT_EQ(AtTheEnd(reports).loss_sum, 2);
  EXPECT_EQ(AtTheEnd(reports).examples, 4);
}

TEST(WorkerReportsTest, MoreExamplesThanASetCanHaveAreNotAdded) {
  WorkerReports reports(0);
  reports.Begin(7);
  wire::HeartbeatRequest heartbeat =
      Totals({{.loss_sum = 8, .examples = 4}, {.loss_sum = 2, .examples = 4}});
  heartbeat.mutable_epoch_loss(0)->set_examples(
      std::numeric_limits<int64_t>::max());
  reports.Keep(heartbeat);
  EXPECT_EQ(AtTheEnd(reports).examples, 4);
}

}  // namespace
}  // namespace parasol
