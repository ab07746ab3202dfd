#include "tool/status/why_text.h"

#include "absl/time/time.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(WhyTextTest, OneParagraphSaysWhatBoundsTheJobAndWhoWaits) {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(1200);
  status.set_end_step(5000);
  status.add_finding()->set_text("a stopped task, ps/1: not heard for 4s");
  status.add_finding()->set_text("nobody, compute");
  status.add_finding()->set_text("worker/3 is gone");
  wire::TaskStatus& worker = *status.add_task();
  worker.mutable_task()->set_role("worker");
  wire::PsWait& wait = *worker.add_ps_wait();
  wait.set_ps("ps/1");
  *wait.mutable_since() = ToProto(absl::Milliseconds(3240));
  worker.add_ps_wait()->set_ps("ps/0");
  EXPECT_EQ(WhyText(status),
            "The job is in phase training at step 1,200 of 5,000. A stopped "
            "task, ps/1: not heard for 4s. Next: nobody, compute; worker/3 is "
            "gone. Waits: worker/0 waits for ps/1 since 3.2s.\n");
}

TEST(WhyTextTest, AJobThatIsCompleteIsBoundByNothing) {
  wire::JobStatus status;
  status.set_phase(wire::COMPLETE);
  status.set_global_step(7);
  EXPECT_EQ(WhyText(status),
            "The job is in phase complete at step 7. Nothing bounds it any "
            "more.\n");
}

TEST(WhyTextTest, AChiefThatSaysNothingOfItIsNotAtItsEnd) {
  wire::JobStatus status;
  status.set_phase(wire::WAITING_FOR_PS);
  EXPECT_EQ(WhyText(status),
            "The job is in phase waiting_for_ps at step 0. The chief does not "
            "say what bounds it.\n");
}

TEST(WhyTextTest, SaysWhoActsForALostPs) {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.add_finding()->set_text("nobody, compute");
  wire::TaskStatus& ps = *status.add_task();
  ps.mutable_task()->set_role("ps");
  ps.set_acted_by("ps/1");
  EXPECT_EQ(WhyText(status),
            "The job is in phase training at step 0. Nobody, compute. ps/1 "
            "acts for ps/0, which was lost: start it again.\n");
  status.clear_finding();
  EXPECT_EQ(WhyText(status),
            "The job is in phase training at step 0. The chief does not say "
            "what bounds it. ps/1 acts for ps/0, which was lost: start it "
            "again.\n");
}

TEST(WhyTextTest, StacksAreShownTaskByTask) {
  wire::InspectedTask task;
  task.set_task("worker/0");
  task.add_part()->set_stacks("thread 5 \"worker\" runs:\n    main\n");
  EXPECT_EQ(StacksText({task}, {"ps/1"}),
            "\nworker/0\n\nthread 5 \"worker\" runs:\n    main\n"
            "\nps/1\n\n  can't be heard: it has shown no stacks\n");
}

}  // namespace
}  // namespace parasol
