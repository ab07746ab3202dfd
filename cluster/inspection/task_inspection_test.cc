#include "cluster/inspection/task_inspection.h"

#include <string>
#include <thread>

#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The chief's clock is an hour ahead.
constexpr absl::Duration kAhead = absl::Hours(1);

class TaskInspectionTest : public testing::Test {
 protected:
  // A heartbeat: what the task shows, and the answer that comes 2 ms later.
  wire::InspectionPart Beat(wire::HeartbeatResponse answer) {
    wire::HeartbeatRequest request;
    task_.Report(request);
    const absl::Time sent = clock_.Now();
    clock_.Advance(absl::Milliseconds(1));
    answer.set_unix_micros(absl::ToUnixMicros(clock_.Now() + kAhead));
    clock_.Advance(absl::Milliseconds(1));
    task_.Heard(answer, sent, clock_.Now());
    return request.inspection();
  }
  // An answer that asks for a trace of this number, which begins in 2 s.
  wire::HeartbeatResponse Trace(uint64_t number) {
    wire::HeartbeatResponse answer;
    wire::Inspection& asked = *answer.mutable_inspection();
    asked.set_kind(wire::Inspection::TRACE);
    asked.set_number(number);
    asked.set_steps(2);
    *asked.mutable_limit() = ToProto(absl::Seconds(10));
    asked.set_begin_unix_micros(
        absl::ToUnixMicros(clock_.Now() + kAhead + absl::Seconds(2)));
    return answer;
  }
  void Record(int spans) {
    for (int i = 0; i < spans; ++i) {
      task_.recorder().Add({.name = "compute",
                            .track = "training",
                            .begin = clock_.Now(),
                            .end = clock_.Now() + absl::Milliseconds(3),
                            .step = i,
                            .bytes = 7});
    }
  }

  SimulatedClock clock_;
  TaskInspection task_{clock_};
};

TEST_F(TaskInspectionTest, ATraceBeginsWhenTheChiefsClockSaysSo) {
  Beat({});
  const wire::HeartbeatResponse trace = Trace(5);
  Beat(trace);
  Record(1);  // two seconds early
  clock_.Advance(absl::Seconds(2));
  Record(3);
  EXPECT_EQ(Beat(trace).number(), 0);  // it goes on
  clock_.Advance(absl::Seconds(10));
  const wire::InspectionPart part = Beat(trace);
  EXPECT_EQ(part.number(), 5);
  EXPECT_TRUE(part.is_complete());
  ASSERT_EQ(part.span_size(), 3);
  EXPECT_EQ(part.span(1).name(), "compute");
  EXPECT_EQ(part.span(1).track(), "training");
  EXPECT_EQ(part.span(1).step(), 1);
  EXPECT_EQ(part.span(1).bytes(), 7);
  EXPECT_EQ(part.span(1).duration_micros(), 3000);
  EXPECT_EQ(part.clock_offset_micros(), absl::ToInt64Microseconds(kAhead));
  EXPECT_EQ(part.clock_delay_micros(), 2000);
}

TEST_F(TaskInspectionTest, WhatIsShownComesInPiecesUntilTheChiefHasIt) {
  const wire::HeartbeatResponse trace = Trace(5);
  Beat(trace);
  clock_.Advance(absl::Seconds(2));
  const int spans = static_cast<int>(TraceRecorder::kMaxSpans);
  Record(spans + 1);
  wire::HeartbeatResponse enough = trace;
  *enough.mutable_inspection()->mutable_limit() = ToProto({});
  Beat(enough);
  EXPECT_TRUE(task_.HasMore());
  int64_t known = 0;
  for (bool is_complete = false; !is_complete;) {
    enough.set_inspection_spans(known);

    const wire::InspectionPart part = Beat(enough);
    EXPECT_EQ(part.first_span(), known);
    EXPECT_LE(part.ByteSizeLong(), TaskInspection::kPartBytes + 4096);
    EXPECT_EQ(part.dropped(), 1);
    // It is sent again to a chief that has not got it.
    EXPECT_EQ(Beat(enough).span_size(), part.span_size());
    known += part.span_size();
    is_complete = part.is_complete();
    enough.set_inspection_spans(known);
    Beat(enough);
  }
  EXPECT_EQ(known, spans);
  Beat({});
  EXPECT_FALSE(task_.HasMore());
  EXPECT_EQ(Beat({}).number(), 0);
}

TEST_F(TaskInspectionTest, ATraceThatIsForgottenIsNotRecorded) {
  Beat(Trace(5));
  EXPECT_TRUE(task_.recorder().is_on());
  Beat({});
  EXPECT_FALSE(task_.recorder().is_on());
}

TEST_F(TaskInspectionTest, ANewerOneTakesItsPlace) {
  Beat(Trace(5));
  clock_.Advance(absl::Seconds(3));
  Record(3);
  const wire::HeartbeatResponse newer = Trace(6);
  Beat(newer);
  clock_.Advance(absl::Seconds(12));
  Record(0);
  const wire::InspectionPart part = Beat(newer);
  EXPECT_EQ(part.number(), 6);
  EXPECT_THAT(part.span(), SizeIs(0));
}

TEST_F(TaskInspectionTest, StacksAreThoseOfOtherThreads) {
  wire::HeartbeatResponse answer;
  answer.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  answer.mutable_inspection()->set_number(9);
  std::string stacks;
  // The session's thread.
  std::jthread session([&] {
    Beat(answer);
    stacks = Beat(answer).stacks();
  });
  session.join();
  // This one, whose function has no name outside of this file.
  EXPECT_THAT(stacks, HasSubstr("thread "));
}

TEST_F(TaskInspectionTest, OfAnotherKindThereIsNothing) {
  wire::HeartbeatResponse answer;
  answer.mutable_inspection()->set_number(9);
  Beat(answer);
  const wire::InspectionPart part = Beat(answer);
  EXPECT_EQ(part.number(), 9);
  EXPECT_TRUE(part.is_complete());
}

}  // namespace
}  // namespace parasol
