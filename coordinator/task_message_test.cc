#include "coordinator/task_message.h"

#include <string>

#include "base/status_matchers.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(TaskMessage, TextsHaveALimit) {
  wire::RegisterRequest request;
  request.mutable_task()->set_role("worker");
  request.set_metrics_address(std::string(kMaxTaskText, 'a'));
  EXPECT_OK(CheckMessage(request));
  request.set_metrics_address(std::string(kMaxTaskText + 1, 'a'));
  EXPECT_THAT(CheckMessage(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "metrics_address has 257 bytes, of at most 256"));
  request.clear_metrics_address();
  request.set_run_id("a\nb");
  EXPECT_THAT(CheckMessage(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("run_id has a control character")));
  request.clear_run_id();
  request.mutable_task()->set_role(std::string(1 << 20, 'r'));
  EXPECT_THAT(
      CheckMessage(request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1048576 bytes")));
}

TEST(TaskMessage, OnlyWorkersClaimSteps) {
  wire::ClaimStepsRequest request;
  request.mutable_task()->set_role("worker");
  EXPECT_OK(CheckMessage(request));
  request.mutable_task()->set_role("ps");
  EXPECT_THAT(CheckMessage(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "ps/0 claims steps; only workers do"));
}

TEST(TaskMessage, AFailureIsOneShortLine) {
  EXPECT_EQ(FailureLine("loss is\nnot finite"), "loss is not finite");
  EXPECT_EQ(FailureLine(std::string(1 << 20, 'x')).size(), kMaxFailureText);
}

}  // namespace
}  // namespace parasol
