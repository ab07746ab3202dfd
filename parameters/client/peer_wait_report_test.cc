#include "parameters/client/peer_wait_report.h"

#include <string>

#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;
using ::testing::StartsWith;

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

// protobuf refuses a whole heartbeat that has a text which is no UTF-8.
TEST(PeerWaitReportTest, WhateverAPeerAnswersTheRequestCanBeRead) {
  for (const std::string& trouble :
       {std::string(299, 'a') + "\u00e4", std::string("\xff\xfe refused")}) {
    PeerWaitReport report;
    wire::HeartbeatRequest request;
    report.Report(
        {{.shard = 0, .owed = absl::ZeroDuration(), .trouble = trouble}},
        kStart, request);
    wire::HeartbeatRequest received;
    ASSERT_TRUE(received.ParseFromString(request.SerializeAsString()));
    EXPECT_THAT(received.ps_wait(0).trouble(),
                StartsWith(trouble[0] == 'a' ? "aaaa" : "\\xff"));
  }
}

}  // namespace
}  // namespace parasol
