#include "tool/status/asked_inspection.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/client/testing/fake_chief.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A chief that gives one answer after the other to questions for what tasks
// have shown, and no other.
class AnsweringChief : public FakeChief {
 public:
  using Answer = absl::StatusOr<wire::InspectResponse>;

  explicit AnsweringChief(std::vector<Answer> answers)
      : answers_(std::move(answers)) {}

  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest&) override {
    if (next_ < answers_.size()) return answers_[next_++];
    return absl::InternalError("asked once more");
  }

 private:
  const std::vector<Answer> answers_;
  size_t next_ = 0;
};

absl::StatusOr<InspectedTasks> Ask(
    std::vector<AnsweringChief::Answer> answers) {
  AnsweringChief chief(std::move(answers));
  wire::InspectRequest request;
  request.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  return AskForInspection(chief, request, absl::Seconds(10));
}

// Answers: one task has shown its stacks, and another has not, or has too.
wire::InspectResponse Answer(bool is_missing) {
  wire::InspectResponse answer;
  answer.add_task()->set_task("worker/0");
  if (is_missing) answer.add_missing_task("worker/1");
  return answer;
}

TEST(AskedInspectionTest, WhatIsMissingIsAskedForAgain) {
  wire::InspectResponse stacks = Answer(false);
  stacks.mutable_task(0)->add_part()->set_stacks("main\n");
  const auto inspected = Ask({Answer(true), Answer(false), stacks});
  ASSERT_OK(inspected.status());
  EXPECT_THAT(inspected->missing, IsEmpty());
  ASSERT_THAT(inspected->tasks, SizeIs(1));
  ASSERT_EQ(inspected->tasks[0].part_size(), 1);
  EXPECT_EQ(inspected->tasks[0].part(0).stacks(), "main\n");
}

// The operator asks again: none of these is a mistake, or lasts.
TEST(AskedInspectionTest, WhatIsOverSoonIsUnavailable) {
  const auto expect = [](std::vector<AnsweringChief::Answer> answers,
                         const std::string& text) {
    EXPECT_THAT(Ask(std::move(answers)).status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(text)));
  };
  expect({absl::ResourceExhaustedError("chief-0:2222: another one")},
         "chief-0:2222: another one");
  expect({absl::CancelledError("chief-0:2222: CANCELLED")},
         "chief-0:2222: CANCELLED: it ended while it was asked");
  expect({Answer(true), absl::NotFoundError("it is gone")}, "it is gone");
  expect({Answer(false), wire::InspectResponse()},
         "what worker/0 has shown is gone");
}

TEST(AskedInspectionTest, AMistakeStaysOne) {
  EXPECT_THAT(Ask({absl::NotFoundError("worker/7 is not there")}).status(),
              StatusIs(absl::StatusCode::kNotFound, "worker/7 is not there"));
  EXPECT_THAT(Ask({absl::UnimplementedError("a ps")}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
