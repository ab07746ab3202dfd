#include "worker/shown/lone_inspection.h"

#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoneInspectionTest : public testing::Test {
 protected:
  absl::StatusOr<wire::InspectResponse> Ask(wire::Inspection::Kind kind,
                                            uint64_t number,
                                            const std::string& task = "") {
    wire::InspectRequest request;
    request.set_task(task);
    wire::Inspection& asked = *request.mutable_inspection();
    asked.set_kind(kind);
    asked.set_number(number);
    asked.set_steps(1);
    *asked.mutable_limit() = ToProto(absl::Seconds(30));
    return inspection_.Inspect(request);
  }
  void Record(int spans) {
    for (int i = 0; i < spans; ++i) {
      inspection_.recorder().Add({.name = "compute",
                                  .track = "training",
                                  .begin = clock_.Now(),
                                  .end = clock_.Now() + absl::Milliseconds(3),
                                  .step = i});
    }
  }

  SimulatedClock clock_;
  LoneInspection inspection_{clock_};
};

TEST_F(LoneInspectionTest, StacksAreThereAtOnce) {
  inspection_.ShowThisThreadFirst();
  // Another thread asks, as a server's does.
  std::thread([this] {
    ASSERT_OK_AND_ASSIGN(const wire::InspectResponse all,
                         Ask(wire::Inspection::STACKS, 1));
    EXPECT_THAT(all.missing_task(), IsEmpty());
    ASSERT_EQ(all.task_size(), 1);
    EXPECT_EQ(all.task(0).task(), "worker/0");
    ASSERT_OK_AND_ASSIGN(
        const wire::InspectResponse whole,
        Ask(wire::Inspection::KIND_UNSPECIFIED, 1, "worker/0"));
    EXPECT_THAT(whole.task(0).part(0).stacks(), HasSubstr("main"));
  }).join();
}

TEST_F(LoneInspectionTest, ATraceIsThereWhenItsStepsAre) {
  ASSERT_OK_AND_ASSIGN(wire::InspectResponse answer,
                       Ask(wire::Inspection::TRACE, 1));
  EXPECT_THAT(answer.missing_task(), ElementsAre("worker/0"));
  Record(3);  // before its time
  clock_.Advance(Inspections::kLead + absl::Seconds(1));
  // More than one heartbeat of a cluster would bring.
  constexpr int kSpans = 12'000;
  inspection_.recorder().EndStep(clock_.Now());
  Record(kSpans);
  ASSERT_OK_AND_ASSIGN(answer, Ask(wire::Inspection::KIND_UNSPECIFIED, 1));
  EXPECT_THAT(answer.missing_task(), ElementsAre("worker/0"));
  inspection_.recorder().EndStep(clock_.Now());
  ASSERT_OK_AND_ASSIGN(answer,
                       Ask(wire::Inspection::KIND_UNSPECIFIED, 1, "worker/0"));
  EXPECT_THAT(answer.missing_task(), IsEmpty());
  EXPECT_EQ(answer.task(0).part(0).span_size(), kSpans);
  EXPECT_FALSE(inspection_.recorder().is_on());
}

TEST_F(LoneInspectionTest, ATraceThatNobodyFetchesEnds) {
  ASSERT_OK(Ask(wire::Inspection::TRACE, 1).status());
  EXPECT_TRUE(inspection_.recorder().is_on());
  clock_.Advance(Inspections::kLead + absl::Seconds(31));
  Record(1);
  EXPECT_FALSE(inspection_.recorder().is_on());
}

TEST_F(LoneInspectionTest, OneGoesOnAtATime) {
  ASSERT_OK(Ask(wire::Inspection::TRACE, 1).status());
  EXPECT_THAT(Ask(wire::Inspection::STACKS, 2).status(),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(LoneInspectionTest, AnotherTaskIsNotThere) {
  EXPECT_THAT(Ask(wire::Inspection::STACKS, 1, "worker/1").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("worker/1 is not there; there are: "
                                 "worker/0")));
}

}  // namespace
}  // namespace parasol
