#include "coordinator/steps/waiting_claims.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Time kStart = absl::FromUnixSeconds(1000);

StepClaim ClaimOf(uint64_t process, int seconds, int64_t completed = 0) {
  StepClaim claim;
  claim.request.mutable_task()->set_incarnation(process);
  claim.request.set_completed_steps(completed);
  claim.deadline = kStart + absl::Seconds(seconds);
  return claim;
}

std::vector<uint64_t> ProcessesOf(const std::vector<StepClaim>& claims) {
  std::vector<uint64_t> processes;
  for (const StepClaim& claim : claims) {
    processes.push_back(claim.request.task().incarnation());
  }
  return processes;
}

TEST(WaitingClaimsTest, DueClaimsComeInTheOrderOfTheirDeadlines) {
  WaitingClaims claims;
  EXPECT_EQ(claims.deadline(), absl::InfiniteFuture());
  claims.Add(ClaimOf(1, 3));
  claims.Add(ClaimOf(2, 1));
  claims.Add(ClaimOf(3, 2));
  EXPECT_EQ(claims.deadline(), kStart + absl::Seconds(1));
  EXPECT_THAT(claims.TakeDue(kStart), IsEmpty());
  EXPECT_THAT(ProcessesOf(claims.TakeDue(kStart + absl::Seconds(2))),
              ElementsAre(2, 3));
  EXPECT_EQ(claims.deadline(), kStart + absl::Seconds(3));
  EXPECT_THAT(ProcessesOf(claims.TakeAll()), ElementsAre(1));
  EXPECT_EQ(claims.size(), 0);
}

TEST(WaitingClaimsTest, ALaterClaimOfAProcessTakesTheEarliersPlace) {
  WaitingClaims claims;
  EXPECT_FALSE(claims.Add(ClaimOf(1, 3, 10)).has_value());
  EXPECT_FALSE(claims.Add(ClaimOf(2, 3)).has_value());
  const std::optional<StepClaim> earlier = claims.Add(ClaimOf(1, 1, 11));
  ASSERT_TRUE(earlier.has_value());
  EXPECT_EQ(earlier->request.completed_steps(), 10);
  EXPECT_EQ(claims.size(), 2);
  const std::vector<StepClaim> due = claims.TakeDue(kStart + absl::Seconds(1));
  ASSERT_THAT(ProcessesOf(due), ElementsAre(1));
  EXPECT_EQ(due[0].request.completed_steps(), 11);
}

}  // namespace
}  // namespace parasol
