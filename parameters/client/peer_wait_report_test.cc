#include "parameters/client/peer_wait_report.h"

#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(PeerWaitReportTest, SharesAreOfTheTimeBetweenReports) {
  PeerWaitReport report;
  wire::HeartbeatRequest first;
  report.Report({{.shard = 0, .owed = absl::Seconds(50)}}, kStart, first);
  EXPECT_EQ(first.ps_wait(0).share(), 0);
  wire::HeartbeatRequest second;
  report.Report({{.shard = 0,
                  .owed = absl::Seconds(51),
                  .since = absl::Milliseconds(300)}},
                kStart + absl::Seconds(4), second);
  ASSERT_EQ(second.ps_wait_size(), 1);
  EXPECT_THAT(second.ps_wait(0).share(), DoubleNear(.25, 1e-9));
  EXPECT_EQ(FromProto(second.ps_wait(0).since()), absl::Milliseconds(300));
}

TEST(PeerWaitReportTest, OfManyPsTheWorstAreTold) {
  PeerWaitReport report;
  std::vector<TrainingParameters::PeerWait> waits(100);
  for (int i = 0; i < 100; ++i) waits[i].shard = i;
  wire::HeartbeatRequest first;
  report.Report(waits, kStart, first);
  for (int i = 0; i < 100; ++i) waits[i].owed = absl::Milliseconds(i);
  waits[3].trouble = "Connection refused";
  wire::HeartbeatRequest second;
  report.Report(waits, kStart + absl::Seconds(1), second);
  ASSERT_EQ(second.ps_wait_size(), static_cast<int>(kMaxReportedWaits));
  EXPECT_EQ(second.ps_wait(0).shard(), 3);
  EXPECT_EQ(second.ps_wait(0).trouble(), "Connection refused");
  EXPECT_EQ(second.ps_wait(1).shard(), 99);
  EXPECT_EQ(second.ps_wait(2).shard(), 98);
}

}  // namespace
}  // namespace parasol
