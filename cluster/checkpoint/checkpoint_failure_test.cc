#include "cluster/checkpoint/checkpoint_failure.h"

#include <string>

#include "base/process.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckpointFailureTest, TheLineNamesTheStepTheAttemptsAndTheCause) {
  const absl::Status full =
      absl::ResourceExhaustedError("ps/1: can't write /c/x: No space left");
  EXPECT_EQ(DescribeFailure(600, 1, full),
            "no checkpoint of step 600 in 1 attempt: ps/1: can't write /c/x: "
            "No space left");
  EXPECT_THAT(DescribeFailure(600, 3, full), HasSubstr("in 3 attempts: "));
}

TEST(CheckpointFailureTest, TheCauseDecidesTheExitCode) {
  struct Case {
    absl::Status cause;
    ExitCode code;
  };
  const Case cases[] = {
      {absl::ResourceExhaustedError("full"), ExitCode::kBadConfiguration},
      {absl::PermissionDeniedError("closed"), ExitCode::kBadConfiguration},
      {absl::NotFoundError("not mounted"), ExitCode::kBadConfiguration},
      {absl::UnavailableError("ps/0 is still writing"), ExitCode::kRetryable},
      {absl::DeadlineExceededError("no answer"), ExitCode::kRetryable},
      {absl::DataLossError("other size"), ExitCode::kPermanentFailure},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.cause.ToString());
    const absl::Status end =
        EndWithoutCheckpoint(600, absl::Minutes(10), c.cause);
    EXPECT_EQ(ExitCodeFor(end), c.code);
    EXPECT_THAT(std::string(end.message()),
                AllOf(HasSubstr("step 600"), HasSubstr("10m"),
                      HasSubstr(std::string(c.cause.message()))));
  }
}

TEST(CheckpointFailureTest, AStopThatLeavesNoTimeIsGivenNone) {
  EXPECT_EQ(EndWithoutCheckpoint(7, absl::ZeroDuration(),
                                 absl::ResourceExhaustedError("full")),
            absl::InvalidArgumentError(
                "no checkpoint of step 7 could be written: full"));
}

}  // namespace
}  // namespace parasol
