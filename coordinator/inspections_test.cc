#include "coordinator/inspections.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kPresent = {"chief/0", "ps/0", "worker/0",
                                           "worker/1"};

wire::InspectRequest TraceRequest(uint64_t number, const char* task = "") {
  wire::InspectRequest request;
  request.set_task(task);
  request.mutable_inspection()->set_kind(wire::Inspection::TRACE);
  request.mutable_inspection()->set_number(number);
  request.mutable_inspection()->set_steps(20);
  *request.mutable_inspection()->mutable_limit() = ToProto(absl::Seconds(10));
  return request;
}

wire::InspectRequest StacksRequest(uint64_t number, const char* task) {
  wire::InspectRequest request;
  request.set_task(task);
  request.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  request.mutable_inspection()->set_number(number);
  return request;
}

wire::InspectRequest FetchRequest(uint64_t number, const char* task) {
  wire::InspectRequest request;
  request.set_task(task);
  request.mutable_inspection()->set_number(number);
  return request;
}

wire::InspectionPart Part(uint64_t number, int64_t first, int spans) {
  wire::InspectionPart part;
  part.set_number(number);
  part.set_first_span(first);
  for (int i = 0; i < spans; ++i) {
    part.add_span()->set_name("compute");
    part.mutable_span(i)->set_track("training");
  }
  return part;
}

wire::InspectionPart LastPart(uint64_t number, int64_t first, int spans) {
  wire::InspectionPart part = Part(number, first, spans);
  part.set_is_complete(true);
  return part;
}

class InspectionsTest : public testing::Test {
 protected:
  absl::StatusOr<wire::InspectResponse> Ask(
      const wire::InspectRequest& request) {
    return inspections_.Inspect(request, kPresent, now_);
  }
  wire::HeartbeatResponse Beat(const std::string& task,
                               const wire::InspectionPart& part = {},
                               uint64_t incarnation = 7) {
    wire::HeartbeatRequest request;
    *request.mutable_inspection() = part;
    wire::HeartbeatResponse answer;
    inspections_.Exchange(task, incarnation, request, now_, answer);
    return answer;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000'000);
  Inspections inspections_;
};

TEST_F(InspectionsTest, NobodyShowsAnythingUnasked) {
  EXPECT_FALSE(Beat("worker/0", LastPart(5, 0, 3)).has_inspection());
}

TEST_F(InspectionsTest, AllTasksThatAreThereShowATraceOfOneTime) {
  const auto begun = Ask(TraceRequest(5));
  ASSERT_OK(begun);
  EXPECT_THAT(begun->missing_task(),
              ElementsAre("chief/0", "ps/0", "worker/0", "worker/1"));
  const wire::HeartbeatResponse answer = Beat("worker/0");
  now_ += absl::Seconds(1);
  EXPECT_EQ(answer.inspection().number(), 5);
  EXPECT_EQ(answer.inspection().steps(), 20);
  EXPECT_EQ(answer.inspection().begin_unix_micros(),
            absl::ToUnixMicros(now_ - absl::Seconds(1) + Inspections::kLead));
  EXPECT_EQ(Beat("ps/0").inspection().begin_unix_micros(),
            answer.inspection().begin_unix_micros());
  // One that came later.
  EXPECT_FALSE(Beat("worker/2").has_inspection());
}

TEST_F(InspectionsTest, PartsFollowEachOtherOnce) {
  ASSERT_OK(Ask(TraceRequest(5)));
  EXPECT_EQ(Beat("worker/0", Part(5, 0, 3)).inspection_spans(), 3);
  EXPECT_EQ(Beat("worker/0", Part(5, 0, 3)).inspection_spans(), 3);
  EXPECT_EQ(Beat("worker/0", Part(5, 9, 3)).inspection_spans(), 3);
  EXPECT_EQ(Beat("worker/0", Part(4, 3, 3)).inspection_spans(), 3);
  EXPECT_FALSE(Beat("worker/0", LastPart(5, 3, 2)).has_inspection());
  EXPECT_FALSE(Beat("worker/0", LastPart(5, 5, 2)).has_inspection());
  const auto shown = Ask(TraceRequest(5, "worker/0"));
  ASSERT_OK(shown);
  EXPECT_THAT(shown->missing_task(),
              ElementsAre("chief/0", "ps/0", "worker/1"));
  ASSERT_EQ(shown->task_size(), 1);
  EXPECT_EQ(shown->task(0).task(), "worker/0");
  EXPECT_THAT(shown->task(0).part(0).span(), SizeIs(5));
  const auto all = Ask(TraceRequest(5));
  ASSERT_OK(all);
  ASSERT_EQ(all->task_size(), 1);
  EXPECT_EQ(all->task(0).part(0).first_span(), 5);
  EXPECT_THAT(all->task(0).part(0).span(), IsEmpty());
}

TEST_F(InspectionsTest, OthersEndWhenTheWorkersHaveTheirSteps) {
  ASSERT_OK(Ask(TraceRequest(5)));
  Beat("worker/0", LastPart(5, 0, 3));
  EXPECT_EQ(FromProto(Beat("ps/0").inspection().limit()), absl::Seconds(10));
  Beat("worker/1", LastPart(5, 0, 3));
  EXPECT_EQ(FromProto(Beat("ps/0").inspection().limit()), absl::ZeroDuration());
}

TEST_F(InspectionsTest, OneGoesOnAtATime) {
  ASSERT_OK(Ask(TraceRequest(5)));
  const auto other = Ask(TraceRequest(6));
  EXPECT_THAT(other.status(), StatusIs(absl::StatusCode::kResourceExhausted,
                                       HasSubstr("for at most 32s more")));
  for (const std::string& task : kPresent) Beat(task, LastPart(5, 0, 1));
  EXPECT_OK(Ask(TraceRequest(6)));
  // A task that is never heard holds nobody up for longer than that.
  now_ += absl::Seconds(32);
  EXPECT_OK(Ask(TraceRequest(7)));
}

TEST_F(InspectionsTest, WhatHasComeIsKeptForAWhile) {
  ASSERT_OK(Ask(TraceRequest(5)));
  Beat("worker/0", LastPart(5, 0, 3));
  now_ += absl::Seconds(32);
  EXPECT_FALSE(Beat("worker/1", LastPart(5, 0, 3)).has_inspection());
  const auto late = Ask(TraceRequest(5, "worker/0"));
  ASSERT_OK(late);
  EXPECT_THAT(late->task(0).part(0).span(), SizeIs(3));
  now_ += Inspections::kKept;
  Beat("worker/0");
  // Another one, by this number.
  EXPECT_THAT(Ask(TraceRequest(5))->task(), IsEmpty());
}

TEST_F(InspectionsTest, AProcessThatComesInsteadBeginsAnew) {
  ASSERT_OK(Ask(TraceRequest(5)));
  Beat("worker/0", Part(5, 0, 3), /*incarnation=*/7);
  EXPECT_EQ(Beat("worker/0", {}, /*incarnation=*/8).inspection_spans(), 0);
  EXPECT_EQ(
      Beat("worker/0", Part(5, 0, 2), /*incarnation=*/8).inspection_spans(), 2);
}

TEST_F(InspectionsTest, OneTaskShowsItsStacks) {
  ASSERT_OK(Ask(StacksRequest(5, "worker/1")));
  EXPECT_FALSE(Beat("worker/0").has_inspection());
  EXPECT_EQ(Beat("worker/1").inspection().kind(), wire::Inspection::STACKS);
  wire::InspectionPart part = LastPart(5, 0, 0);
  part.set_stacks("thread 1:\n  main\x1b[2J\n");
  Beat("worker/1", part);
  const auto shown = Ask(StacksRequest(5, "worker/1"));
  ASSERT_OK(shown);
  EXPECT_THAT(shown->missing_task(), IsEmpty());
  EXPECT_EQ(shown->task(0).part(0).stacks(), "thread 1:\n  main?[2J\n");
  EXPECT_THAT(Ask(StacksRequest(6, "worker/9")).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("worker/9"), HasSubstr("worker/0"))));
}

TEST_F(InspectionsTest, StacksOfAllTasksAreFetchedTaskByTask) {
  ASSERT_OK(Ask(StacksRequest(5, "")));
  for (const std::string& task : kPresent) {
    wire::InspectionPart part = LastPart(5, 0, 0);
    part.set_stacks(task);
    Beat(task, part);
  }
  const auto all = Ask(StacksRequest(5, ""));
  ASSERT_OK(all);
  EXPECT_THAT(all->missing_task(), IsEmpty());
  EXPECT_EQ(all->task_size(), 4);
  for (const wire::InspectedTask& task : all->task()) {
    EXPECT_EQ(task.part(0).stacks(), "");
    const auto one = Ask(FetchRequest(5, task.task().c_str()));
    ASSERT_OK(one);
    ASSERT_EQ(one->task_size(), 1);
    EXPECT_EQ(one->task(0).part(0).stacks(), task.task());
  }
}

TEST_F(InspectionsTest, StacksOfManyTasksHaveABound) {
  constexpr int kTasks = 128;
  std::vector<std::string> present;
  for (int i = 0; i < kTasks; ++i) present.push_back(absl::StrCat("ps/", i));
  ASSERT_OK(inspections_.Inspect(StacksRequest(5, ""), present, now_));
  wire::InspectionPart part = LastPart(5, 0, 0);
  part.set_stacks(std::string(1 << 20, 'x'));
  Beat("ps/7", part);
  const auto one = inspections_.Inspect(FetchRequest(5, "ps/7"), present, now_);
  ASSERT_OK(one);
  const std::string& stacks = one->task(0).part(0).stacks();
  EXPECT_EQ(stacks.size(), Inspections::kMaxStackBytesOfAll / kTasks);
  EXPECT_THAT(stacks, EndsWith("x\n(cut)\n"));
}

TEST_F(InspectionsTest, AFetchBeginsNothing) {
  EXPECT_THAT(Ask(FetchRequest(5, "worker/0")).status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(Beat("worker/0").has_inspection());
  ASSERT_OK(Ask(TraceRequest(5)));
  for (const std::string& task : kPresent) Beat(task, LastPart(5, 0, 1));
  EXPECT_OK(Ask(FetchRequest(5, "worker/0")));
  ASSERT_OK(Ask(TraceRequest(6)));
  EXPECT_THAT(Ask(FetchRequest(5, "worker/1")).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("another inspection has begun")));
  EXPECT_EQ(Beat("worker/0").inspection().number(), 6);
}

TEST_F(InspectionsTest, QuestionsThatMakeNoSenseAreRefused) {
  wire::InspectRequest request = TraceRequest(0);
  EXPECT_THAT(Ask(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  request = TraceRequest(5);
  request.mutable_inspection()->set_steps(0);
  EXPECT_THAT(Ask(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  request.mutable_inspection()->set_steps(Inspections::kMaxSteps + 1);
  EXPECT_THAT(Ask(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  request = TraceRequest(5);
  for (const int64_t seconds :
       {int64_t{0}, int64_t{-1}, int64_t{61}, int64_t{1} << 62}) {
    request.mutable_inspection()->mutable_limit()->set_seconds(seconds);
    EXPECT_THAT(Ask(request).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << seconds;
  }
  request = TraceRequest(5);
  request.mutable_inspection()->set_kind(
      static_cast<wire::Inspection::Kind>(17));
  EXPECT_THAT(Ask(request).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Beat("worker/0").has_inspection());
}

TEST_F(InspectionsTest, WhatIsOutOfBoundsIsLeftOut) {
  ASSERT_OK(Ask(TraceRequest(5)));
  wire::InspectionPart part = Part(5, 0, 4);
  part.mutable_span(0)->set_name(std::string(1 << 20, 'a'));
  part.mutable_span(1)->set_track("\n\x01");
  part.mutable_span(2)->set_begin_micros(INT64_MIN);
  part.mutable_span(3)->set_duration_micros(INT64_MAX);
  part.set_clock_offset_micros(INT64_MIN);
  part.set_dropped(INT64_MAX);
  // Fields that no version has, and that nobody shows.
  part.mutable_span(0)->MergeFromString("\xfa\x01\x04more");
  ASSERT_THAT(part.span(0).SerializeAsString(), HasSubstr("more"));
  EXPECT_EQ(Beat("worker/0", part).inspection_spans(), 4);
  const auto shown = Ask(TraceRequest(5, "worker/0"));
  ASSERT_OK(shown);
  const wire::InspectionPart& kept = shown->task(0).part(0);
  ASSERT_EQ(kept.span_size(), 2);
  EXPECT_LE(kept.span(0).name().size(), 64);
  EXPECT_THAT(kept.span(0).SerializeAsString(), Not(HasSubstr("more")));
  EXPECT_EQ(kept.span(1).track().find('\n'), std::string::npos);
  EXPECT_GE(kept.dropped(), 2);
  EXPECT_GT(kept.clock_offset_micros(), INT64_MIN);
}

TEST_F(InspectionsTest, ATaskMayShowSoMuch) {
  ASSERT_OK(Ask(TraceRequest(5)));
  const int half = Inspections::kMaxSpans / 2;
  int64_t known = 0;
  for (int i = 0; i < 4; ++i) {
    known = Beat("worker/0", Part(5, known, half)).inspection_spans();
  }
  EXPECT_EQ(known, 4 * half);
  Beat("worker/0", LastPart(5, known, 0));
  const auto shown = Ask(TraceRequest(5, "worker/0"));
  ASSERT_OK(shown);
  EXPECT_EQ(shown->task(0).part(0).span_size(), Inspections::kMaxSpans);
  EXPECT_EQ(shown->task(0).part(0).dropped(), 2 * half);
}

}  // namespace
}  // namespace parasol
