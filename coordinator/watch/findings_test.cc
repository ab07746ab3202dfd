#include "coordinator/watch/findings.h"

#include <string>

#include "absl/time/time.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A job of three workers and two ps that trains, and what is planted in it.
class FindingsTest : public testing::Test {
 protected:
  FindingsTest() {
    status_.set_phase(wire::TRAINING);
    for (int i = 0; i < 2; ++i) AddTask("ps", i);
    for (int i = 0; i < 3; ++i) {
      wire::TaskStatus& worker = AddTask("worker", i);
      worker.mutable_pace()->set_slowness(1);
      SetStep(i, {.input = 1, .pull = 2, .compute = 10, .push = 2});
      for (int ps = 0; ps < 2; ++ps) {
        wire::PsWait& wait = *worker.add_ps_wait();
        wait.set_shard(ps);
        wait.set_ps(ps == 0 ? "ps/0" : "ps/1");
        wait.set_share(.2);
      }
    }
    AddTask("evaluator", 0);
  }

  wire::TaskStatus& AddTask(const std::string& role, int index) {
    wire::TaskStatus& task = *status_.add_task();
    task.mutable_task()->set_role(role);
    task.mutable_task()->set_index(index);
    task.set_alive(true);
    if (role == "ps") task.mutable_ps_load()->set_busy_threads(.1);
    return task;
  }

  struct Milliseconds {
    double input = 0;
    double pull = 0;
    double compute = 0;
    double push = 0;
    double wait = 0;
    double stood_still = 0;
  };
  static void Set(google::protobuf::Duration* part, double milliseconds) {
    *part = ToProto(absl::Milliseconds(milliseconds));
  }
  void SetStep(int worker, const Milliseconds& times) {
    wire::StepTimes& step = *Worker(worker).mutable_pace()->mutable_step();
    Set(step.mutable_input(), times.input);
    Set(step.mutable_pull(), times.pull);
    Set(step.mutable_compute(), times.compute);
    Set(step.mutable_push(), times.push);
    Set(step.mutable_wait(), times.wait);
    Set(step.mutable_stood_still(), times.stood_still);
  }
  wire::TaskStatus& Ps(int index) { return *status_.mutable_task(index); }
  wire::TaskStatus& Worker(int index) {
    return *status_.mutable_task(2 + index);
  }
  wire::PsWait& Wait(int worker, int ps) {
    return *Worker(worker).mutable_ps_wait(ps);
  }
  void SetSlow(int worker, double slowness) {
    Worker(worker).mutable_pace()->set_slowness(slowness);
    Worker(worker).set_slow("slow");
  }

  wire::Finding Top() const {
    wire::JobStatus status = status_;
    AddFindings(status);
    return status.finding_size() == 0 ? wire::Finding() : status.finding(0);
  }
  void ExpectTop(wire::Finding::Kind kind, const std::string& task,
                 const testing::Matcher<const std::string&>& text) const {
    const wire::Finding top = Top();
    EXPECT_EQ(wire::Finding::Kind_Name(top.kind()),
              wire::Finding::Kind_Name(kind))
        << top.text();
    EXPECT_EQ(top.task(), task);
    EXPECT_THAT(top.text(), text);
  }

  wire::JobStatus status_;
};

TEST_F(FindingsTest, NobodyHoldsUpAJobThatComputes) {
  ExpectTop(wire::Finding::COMPUTE, "", HasSubstr("nobody, compute: passes "));
}

TEST_F(FindingsTest, AWorkerWithoutBatches) {
  SetStep(2, {.input = 90, .compute = 10});
  SetSlow(2, 7);
  ExpectTop(wire::Finding::INPUT, "worker/2",
            AllOf(HasSubstr("90 ms of a step's 100 ms, other workers 1 ms")));
}

TEST_F(FindingsTest, AllWorkersWithoutBatches) {
  for (int i = 0; i < 3; ++i) SetStep(i, {.input = 90. + i, .compute = 10});
  ExpectTop(wire::Finding::INPUT, "worker/2", HasSubstr("worker/2 longest"));
}

TEST_F(FindingsTest, AWorkerWithASlowProcessor) {
  SetStep(1, {.input = 1, .pull = 2, .compute = 60, .push = 2});
  SetSlow(1, 4);
  ExpectTop(wire::Finding::PROCESSOR, "worker/1", HasSubstr("60 ms of a step"));
}

TEST_F(FindingsTest, AWorkerThatStandsStill) {
  SetStep(1, {.input = 1, .pull = 80, .compute = 10, .stood_still = 70});
  SetSlow(1, 4);
  ExpectTop(wire::Finding::PROCESSOR, "worker/1", HasSubstr("stands still"));
}

TEST_F(FindingsTest, ASlowLinkOfOneWorkerAndOnePs) {
  SetStep(2, {.input = 1, .pull = 100, .compute = 10, .push = 40});
  SetSlow(2, 10);
  Wait(2, 1).set_share(.9);
  ExpectTop(
      wire::Finding::LINK, "worker/2",
      AllOf(HasSubstr("between worker/2 and ps/1"), HasSubstr("90 % of its")));
}

TEST_F(FindingsTest, ASlowLinkInSynchronousSteps) {
  status_.set_num_replicas_in_sync(3);
  for (int i = 0; i < 3; ++i)
    SetStep(i, {.pull = 30, .compute = 10, .push = 30});
  Ps(0).mutable_ps_load()->set_late_worker("worker/0");
  Ps(0).mutable_ps_load()->set_late_share(.01);
  Ps(1).mutable_ps_load()->set_late_worker("worker/2");
  Ps(1).mutable_ps_load()->set_late_share(.6);
  ExpectTop(wire::Finding::LINK, "worker/2",
            HasSubstr("between worker/2 and ps/1"));
  // Late everywhere it is the worker.
  Ps(0).mutable_ps_load()->set_late_worker("worker/2");
  Ps(0).mutable_ps_load()->set_late_share(.5);
  ExpectTop(wire::Finding::WORKER, "worker/2", HasSubstr("every ps"));
}

TEST_F(FindingsTest, WithoutPsWorkersWaitForEachOthersSums) {
  status_.mutable_task()->DeleteSubrange(0, 2);
  for (wire::TaskStatus& worker : *status_.mutable_task()) {
    worker.clear_ps_wait();
    wire::StepTimes& step = *worker.mutable_pace()->mutable_step();
    *step.mutable_compute() = ToProto(absl::Milliseconds(10));
    *step.mutable_push() = ToProto(absl::Milliseconds(90));
  }
  ExpectTop(wire::Finding::LINK, "", HasSubstr("for each other's sums"));
}

TEST_F(FindingsTest, APsThatNobodyReachesIsOneFinding) {
  for (int i = 0; i < 3; ++i) {
    Wait(i, 1).set_trouble("10.0.0.7:2222: no route");
    *Wait(i, 1).mutable_since() = ToProto(absl::Seconds(3 + i));
  }
  AddFindings(status_);
  EXPECT_THAT(status_.finding(0).text(),
              AllOf(HasSubstr("worker/0, worker/1, worker/2 can't reach ps/1"),
                    HasSubstr("for 5")));
  ASSERT_GE(status_.finding_size(), 2);
  EXPECT_NE(status_.finding(1).kind(), wire::Finding::UNREACHABLE);
}

TEST_F(FindingsTest, APsWithMoreToDoThanTheOther) {
  for (int i = 0; i < 3; ++i) {
    SetStep(i, {.pull = 30, .compute = 10, .push = 30});
    Wait(i, 1).set_share(.8);
  }
  Ps(1).mutable_ps_load()->set_busy_threads(2);
  ExpectTop(wire::Finding::PS, "ps/1", HasSubstr("has the most to do"));
  Ps(1).mutable_ps_load()->set_busy_threads(.05);
  ExpectTop(wire::Finding::LINK, "ps/1", HasSubstr("its network"));
  wire::HotRow& hot = *Ps(1).mutable_ps_load()->mutable_hot_row();
  hot.set_table("users");
  hot.set_row(7);
  hot.set_share(.9);
  ExpectTop(wire::Finding::HOT_ROW, "ps/1",
            HasSubstr("row 7 of table users is 90 % of the rows"));
}

TEST_F(FindingsTest, AStoppedPsAndWhoWaitsForIt) {
  *Ps(1).mutable_silence() = ToProto(absl::Seconds(4));
  *Wait(0, 1).mutable_since() = ToProto(absl::Milliseconds(3500));
  *Worker(1).mutable_silence() = ToProto(absl::Seconds(5));
  ExpectTop(wire::Finding::STOPPED, "ps/1",
            AllOf(HasSubstr("not heard for 4s"),
                  HasSubstr("worker/0 waits for it, for 3.5s")));
}

TEST_F(FindingsTest, AStoppedWorker) {
  *Worker(2).mutable_silence() = ToProto(absl::Seconds(4));
  ExpectTop(wire::Finding::STOPPED, "worker/2", HasSubstr("not heard for 4s"));
}

TEST_F(FindingsTest, APsThatIsHeardAndFinishesNothing) {
  *Ps(0).mutable_ps_load()->mutable_stuck() = ToProto(absl::Seconds(3));
  ExpectTop(wire::Finding::STUCK, "ps/0", HasSubstr("a lock"));
}

TEST_F(FindingsTest, APsThatCantBeReached) {
  *Wait(2, 1).mutable_since() = ToProto(absl::Seconds(5));
  Wait(2, 1).set_trouble("10.0.0.7:2222: Connection refused");
  ExpectTop(wire::Finding::UNREACHABLE, "ps/1",
            HasSubstr("worker/2 can't reach ps/1 at 10.0.0.7:2222: Connection "
                      "refused, for 5s"));
  // It is not there at all.
  Ps(1).set_alive(false);
  status_.add_missing_task("ps/1");
  *status_.mutable_waited() = ToProto(absl::Seconds(12));
  ExpectTop(wire::Finding::MISSING, "ps/1",
            HasSubstr("waits for ps/1, which is not there, for 12s"));
}

TEST_F(FindingsTest, AFullDisk) {
  status_.set_trouble("no checkpoint of step 7: ps/0: No space left on device");
  ExpectTop(wire::Finding::CHECKPOINT, "", HasSubstr("No space left"));
}

TEST_F(FindingsTest, ATroubleIsOfTheKindThatTheCoordinatorSays) {
  status_.set_trouble("workers say that they have completed 9 steps");
  *status_.mutable_waited() = ToProto(absl::Seconds(3));
  wire::Finding& trouble = *status_.add_finding();
  trouble.set_kind(wire::Finding::WORKER);
  trouble.set_text(status_.trouble());
  ExpectTop(wire::Finding::WORKER, "", HasSubstr("9 steps, for 3s"));
  AddFindings(status_);
  for (int i = 1; i < status_.finding_size(); ++i) {
    EXPECT_NE(status_.finding(i).kind(), wire::Finding::WORKER);
  }
  status_.set_phase(wire::COMPLETE);
  AddFindings(status_);
  EXPECT_EQ(status_.finding_size(), 0);
}

TEST_F(FindingsTest, ASlowDiskOfAPs) {
  status_.set_phase(wire::FINISHING);
  *Ps(0).mutable_ps_load()->mutable_writing() = ToProto(absl::Seconds(1));
  *Ps(1).mutable_ps_load()->mutable_writing() = ToProto(absl::Seconds(30));
  ExpectTop(wire::Finding::CHECKPOINT, "ps/1", HasSubstr("the disk of ps/1"));
  status_.set_phase(wire::LOADING);
  Ps(1).mutable_ps_load()->clear_writing();
  Ps(0).mutable_ps_load()->clear_writing();
  *Ps(0).mutable_ps_load()->mutable_loading() = ToProto(absl::Seconds(9));
  ExpectTop(wire::Finding::LOADING, "ps/0", HasSubstr("for 9s"));
}

TEST_F(FindingsTest, AnEvaluatorThatIsBehind) {
  status_.set_due_evaluations(3);
  for (int i = 0; i < 3; ++i) SetStep(i, {.compute = 1, .wait = 20});
  ExpectTop(wire::Finding::EVALUATION, "evaluator/0", HasSubstr("3 evalu"));
  status_.set_awaited_evaluation(200);
  *status_.mutable_evaluation_waited() = ToProto(absl::Seconds(12));
  ExpectTop(wire::Finding::EVALUATION, "evaluator/0",
            HasSubstr("waits for the evaluation of step 200, for 12s"));
}

TEST_F(FindingsTest, AJobThatIsOver) {
  status_.set_phase(wire::FAILED);
  status_.set_failure("worker/1: the loss is nan");
  ExpectTop(wire::Finding::FAILURE, "", HasSubstr("the loss is nan"));
  status_.set_phase(wire::COMPLETE);
  AddFindings(status_);
  EXPECT_EQ(status_.finding_size(), 0);
}

TEST_F(FindingsTest, AJobOfWhichNothingIsKnownYet) {
  for (int i = 0; i < 3; ++i) Worker(i).clear_pace();
  ExpectTop(wire::Finding::KIND_UNSPECIFIED, "", HasSubstr("nothing is known"));
}

}  // namespace
}  // namespace parasol
