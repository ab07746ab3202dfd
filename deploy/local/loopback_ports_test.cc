#include "deploy/local/loopback_ports.h"

#include <set>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(LoopbackPortsTest, PortsDifferAndLieBelowTheKernelsRange) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(50));
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 50u);
  EXPECT_THAT(ports, testing::Each(testing::Lt(32768)));
}

TEST(LoopbackPortsTest, MoreThanThereAreIsAnError) {
  EXPECT_THAT(FreeLoopbackPorts(100000),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace parasol
