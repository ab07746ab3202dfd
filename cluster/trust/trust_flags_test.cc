#include "cluster/trust/trust_flags.h"

#include <fstream>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::HasSubstr;

TaskConfig At(const std::string& address) {
  TaskConfig config;
  config.role = Role::kWorker;
  config.index = 3;
  config.address = address;
  config.cluster = ClusterSpec{.jobs = {{Role::kWorker, {{3, address}}}}};
  return config;
}

TEST(TrustOfTaskTest, TokenMakesTheTaskItsOwnIdentity) {
  const absl::FlagSaver saver;
  const std::string path = absl::StrCat(testing::TempDir(), "/token");
  std::ofstream(path) << "0123456789abcdef";
  absl::SetFlag(&FLAGS_token_file, path);
  ASSERT_OK_AND_ASSIGN(const auto trust,
                       TrustOfTask(At("10.0.0.7:1"), PeerRole::kWorker));
  EXPECT_EQ(trust->identity().role, PeerRole::kWorker);
  EXPECT_EQ(trust->identity().index, 3);
  ASSERT_OK_AND_ASSIGN(const auto beside,
                       TrustOfTask(At("10.0.0.7:1"), PeerRole::kChief));
  EXPECT_EQ(beside->identity().role, PeerRole::kChief);
  EXPECT_EQ(beside->identity().index, 0);
}

TEST(TrustOfTaskTest, NetworkNeedsKeysOrInsecure) {
  const absl::FlagSaver saver;
  EXPECT_THAT(
      TrustOfTask(At("10.0.0.7:1"), PeerRole::kWorker).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure")));
  EXPECT_THAT(TrustOfTask(At("127.0.0.1:1"), PeerRole::kWorker),
              IsOkAndHolds(nullptr));
  absl::SetFlag(&FLAGS_insecure, true);
  EXPECT_THAT(TrustOfTask(At("10.0.0.7:1"), PeerRole::kWorker),
              IsOkAndHolds(nullptr));
}

TEST(MetricsListenAddressTest, MetricsAreWhereTheTaskIs) {
  EXPECT_EQ(MetricsListenAddress("", At("127.0.0.1:1")), "127.0.0.1:0");
  EXPECT_EQ(MetricsListenAddress("", At("10.0.0.7:1")), "0.0.0.0:0");
  EXPECT_EQ(MetricsListenAddress("", TaskConfig()), "127.0.0.1:0");
  EXPECT_EQ(MetricsListenAddress("0.0.0.0:9", At("127.0.0.1:1")), "0.0.0.0:9");
}

}  // namespace
}  // namespace parasol
