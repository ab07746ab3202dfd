#include "evaluator/job_evaluation.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/tiny_job.h"
#include "evaluator/evaluator_metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"
#include "storage/event_histogram.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the test lets the chief say; outlives the session.
class FakeChief {
 public:
  explicit FakeChief(wire::RegisterResponse registration)
      : registration_(std::move(registration)) {}

  void Say(wire::JobPhase phase, const std::string& failure = "") {
    absl::MutexLock lock(&mu_);
    state_.set_phase(phase);
    state_.set_failure(failure);
  }
  void Miss(const std::string& task) {
    absl::MutexLock lock(&mu_);
    state_.add_missing_task(task);
  }
  void Disappear() {
    absl::MutexLock lock(&mu_);
    lost_ = absl::UnavailableError("chief at h0:2222 is lost");
  }
  bool was_left() {
    absl::MutexLock lock(&mu_);
    return left_;
  }
  void AwaitLeave() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&left_));
  }
  void ForgetEval() { registration_.mutable_job()->clear_eval(); }
  void ChangeJob(const std::function<void(job::Job&)>& change) {
    change(*registration_.mutable_job());
  }

  std::unique_ptr<ChiefSession> NewSession() {
    return std::make_unique<Session>(*this);
  }

 private:
  class Session : public ChiefSession {
   public:
    explicit Session(FakeChief& chief) : chief_(chief) {}
    ~Session() override { Stop(); }

    const wire::RegisterResponse& registration() const override {
      return chief_.registration_;
    }
    ChiefClient& chief() override {
      LOG(FATAL) << "an evaluator asks the chief for nothing";
      std::abort();
    }
    wire::HeartbeatResponse state() const override {
      absl::MutexLock lock(&chief_.mu_);
      return chief_.state_;
    }
    int64_t answers() const override { return 1; }
    absl::Status Await(
        std::function<bool(const wire::HeartbeatResponse&)> predicate,
        absl::Duration, const std::function<bool()>&) override {
      absl::MutexLock lock(&chief_.mu_);
      const auto done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(chief_.mu_) {
        return stopped_ || !chief_.lost_.ok() || predicate(chief_.state_);
      };
      chief_.mu_.Await(absl::Condition(&done));
      if (stopped_) return absl::CancelledError("stopped");
      return chief_.lost_;
    }
    absl::Status AwaitLeave(absl::Duration, absl::Duration,
                            const std::function<bool()>&) override {
      return absl::UnimplementedError("an evaluator holds no updates");
    }
    void OnLost(std::function<void(absl::Status)>) override {}
    void Leave(int64_t) override {
      absl::MutexLock lock(&chief_.mu_);
      chief_.left_ = true;
    }
    void Stop() override {
      absl::MutexLock lock(&chief_.mu_);
      stopped_ = true;
    }

   private:
    FakeChief& chief_;
    bool stopped_ ABSL_GUARDED_BY(chief_.mu_) = false;
  };

  wire::RegisterResponse registration_;
  absl::Mutex mu_;
  wire::HeartbeatResponse state_ ABSL_GUARDED_BY(mu_);
  absl::Status lost_ ABSL_GUARDED_BY(mu_);
  bool left_ ABSL_GUARDED_BY(mu_) = false;
};

// A simulated clock that counts the waits on it.
class CountingClock : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    ++waits_;
    return SimulatedClock::AwaitWithTimeout(mu, condition, timeout);
  }
  int waits() const { return waits_; }

 private:
  std::atomic<int> waits_{0};
};

class JobEvaluationTest : public TinyJobFixture {
 protected:
  JobEvaluationTest() : chief_(Registration()) { chief_.Say(wire::TRAINING); }
  ~JobEvaluationTest() override {
    if (thread_.joinable()) AwaitResult().IgnoreError();
  }

  // Runs an evaluation on a thread of its own.
  void Start(JobEvaluation::Options options = JobEvaluation::Options()) {
    options.model = {.data_dir = data_dir(), .compute = {.device = "cpu"}};
    evaluation_ = std::make_unique<JobEvaluation>(options, chief_.NewSession(),
                                                  clock_, registry_);
    thread_ = std::thread([this] {
      absl::Status result = evaluation_->Run();
      absl::MutexLock lock(&mu_);
      result_ = std::move(result);
      done_ = true;
    });
  }

  // Its result, in as much simulated time as it takes.
  absl::Status AwaitResult() {
    LetTimePassUntil([this] {
      absl::MutexLock lock(&mu_);
      return done_;
    });
    thread_.join();
    absl::MutexLock lock(&mu_);
    return result_;
  }

  absl::Status RunToTheEnd() {
    Start();
    return AwaitResult();
  }

  void LetTimePassUntil(const std::function<bool()>& condition) {
    while (!condition()) {
      clock_.Advance(absl::Milliseconds(10));
      std::this_thread::yield();
    }
  }
  void AwaitEvaluations(double count) {
    LetTimePassUntil([&] {
      return EvaluatorMetrics(registry_).evaluations_total.value() == count;
    });
  }

  // The lines of evaluations.jsonl.
  std::vector<nlohmann::json> Evaluations() {
    std::vector<nlohmann::json> lines;
    const auto text =
        ReadFile(checkpoint_dir() + "/evaluations.jsonl", 1 << 20);
    for (const auto line :
         absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  std::vector<int64_t> EvaluatedSteps() {
    std::vector<int64_t> steps;
    for (const auto& line : Evaluations()) steps.push_back(line["global_step"]);
    return steps;
  }

  void Damage(int64_t step, const std::string& file) {
    ASSERT_OK(WriteFileDurably(
        CheckpointStore(checkpoint_dir()).PathOf(step) + "/" + file, "damage"));
  }

  FakeChief chief_;
  CountingClock clock_;
  MetricsRegistry registry_;
  std::unique_ptr<JobEvaluation> evaluation_;

 private:
  wire::RegisterResponse Registration() const {
    wire::RegisterResponse registration;
    *registration.mutable_job() = TinyJob();
    registration.set_checkpoint_directory(checkpoint_dir());
    return registration;
  }

  absl::Mutex mu_;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

TEST_F(JobEvaluationTest, EveryCheckpointOfACompleteJobIsEvaluatedInOrder) {
  ASSERT_OK(WriteCheckpoint(0, {0, 1, 1, 0}, /*final=*/false));
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(RunToTheEnd());
  const auto lines = Evaluations();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["global_step"], 0);
  EXPECT_FALSE(lines[0]["final"]);
  EXPECT_EQ(lines[1]["global_step"], 10);
  EXPECT_THAT(double{lines[1]["accuracy"]}, DoubleNear(kIdentityAccuracy, 0));
  EXPECT_THAT(double{lines[1]["loss"]}, DoubleNear(kIdentityLoss, 1e-6));
  EXPECT_EQ(lines[1]["examples"], 3);
  EXPECT_EQ(lines[1]["checkpoint"], checkpoint_dir() + "/ckpt-000000000010");
  EXPECT_TRUE(lines[1]["final"]);
}

TEST_F(JobEvaluationTest, WithTimesForEvaluationsOnlyMarkedOnesAreEvaluated) {
  job_of_checkpoints_.mutable_evaluation()->set_every_steps(10);
  ASSERT_OK(WriteCheckpoint(0, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(5, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false, true));
  ASSERT_OK(WriteCheckpoint(12, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(RunToTheEnd());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 12));
}

TEST_F(JobEvaluationTest, TheBestCheckpointAndTheEventsAreBesideTheOthers) {
  chief_.ChangeJob([](job::Job& job) {
    job.set_tensorboard(true);
    job::KeepBest& policy = *job.mutable_checkpoint()->mutable_keep_best();
    policy.set_metric("accuracy");
    policy.set_mode(job::MAX);
  });
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(20, {0, 1, 1, 0}, /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(RunToTheEnd());
  EXPECT_THAT(ReadFile(checkpoint_dir() + "/BEST", 1000),
              IsOkAndHolds(HasSubstr("\"ckpt-000000000010\"")));
  EXPECT_TRUE(IsDirectory(checkpoint_dir() + "/tensorboard/eval"));
}

TEST_F(JobEvaluationTest, HistogramsAreInTheEventsIfTheJobWantsThem) {
  chief_.ChangeJob([](job::Job& job) {
    job.set_tensorboard(true);
    job.set_tensorboard_histograms(true);
  });
  ASSERT_OK(WriteCheckpoint(20, {.5, 1, 1, .5}, /*final=*/true));
  chief_.Say(wire::COMPLETE);
  EXPECT_OK(RunToTheEnd());
  const std::string directory = checkpoint_dir() + "/tensorboard/eval/";
  EXPECT_THAT(ReadFile(directory + ListDirectory(directory)->at(0), 100000),
              IsOkAndHolds(AllOf(
                  HasSubstr("logits/bias"), HasSubstr("logits/kernel"),
                  HasSubstr(HistogramBytes(HistogramOf({.5, 1, 1, .5}))))));
}

TEST_F(JobEvaluationTest, ResultsAreInTheMetrics) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);
  ASSERT_OK(RunToTheEnd());

  EvaluatorMetrics metrics(registry_);
  EXPECT_THAT(registry_.Text(),
              HasSubstr("\nparasol_evaluator_accuracy_ratio 0.666"));
  EXPECT_THAT(metrics.loss.value(), DoubleNear(kIdentityLoss, 1e-6));
  EXPECT_EQ(metrics.global_step.value(), 10);
  EXPECT_EQ(metrics.evaluations_total.value(), 1);
  EXPECT_EQ(metrics.corrupt_checkpoints_total.value(), 0);
  EXPECT_THAT(
      registry_.Text(),
      HasSubstr("parasol_evaluator_evaluation_duration_seconds_count 1"));
}

TEST_F(JobEvaluationTest, CheckpointsAreEvaluatedAsTheyAppear) {
  Start();
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  AwaitEvaluations(1);
  ASSERT_OK(WriteCheckpoint(20, Identity(), /*final=*/false));
  AwaitEvaluations(2);
  ASSERT_OK(WriteCheckpoint(30, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 20, 30));
}

TEST_F(JobEvaluationTest, AFinalCheckpointAtAKnownStepIsEvaluatedAsWell) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  Start();
  AwaitEvaluations(1);
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 10));
}

TEST_F(JobEvaluationTest, DamagedCheckpointsAreCountedOnceAndPassedOver) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(20, Identity(), /*final=*/false));
  ASSERT_OK(WriteCheckpoint(30, Identity(), /*final=*/false));
  Damage(10, "MANIFEST");
  Damage(20, "0.sst");
  Start();
  AwaitEvaluations(1);
  ASSERT_OK(WriteCheckpoint(40, Identity(), /*final=*/true));
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(30, 40));
  EXPECT_EQ(EvaluatorMetrics(registry_).corrupt_checkpoints_total.value(), 2);
}

TEST_F(JobEvaluationTest, ADamagedLastCheckpointIsTheResult) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  Damage(10, "0.sst");
  chief_.Say(wire::COMPLETE);

  EXPECT_THAT(RunToTheEnd(), StatusIs(absl::StatusCode::kDataLoss,
                                      HasSubstr("ckpt-000000000010")));
}

TEST_F(JobEvaluationTest, TheChiefIsLeftBeforeTheLastCheckpointIsEvaluated) {
  Start();
  chief_.Say(wire::COMPLETE);
  chief_.AwaitLeave();
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10));
}

TEST_F(JobEvaluationTest, ALastCheckpointThatStaysOutOfSightIsNotFound) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  chief_.Say(wire::COMPLETE);

  EXPECT_THAT(RunToTheEnd(), StatusIs(absl::StatusCode::kNotFound,
                                      HasSubstr(checkpoint_dir())));
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10));
}

TEST_F(JobEvaluationTest,
       ACheckpointDirectoryThatIsNotThereIsNamedAndNotFound) {
  std::filesystem::remove(checkpoint_dir());
  testing::internal::CaptureStderr();
  const absl::Status result = RunToTheEnd();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("waiting for the checkpoint directory " +
                        checkpoint_dir() + ", which the chief has made"));
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kNotFound,
                               AllOf(HasSubstr(checkpoint_dir()),
                                     HasSubstr("or set --checkpoint_dir"))));
}

TEST_F(JobEvaluationTest, ACheckpointDirectoryThatAppearsLateIsFollowed) {
  const std::string late = checkpoint_dir() + "-late";
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  std::filesystem::remove_all(late);
  std::filesystem::rename(checkpoint_dir(), late);
  // The simulated time runs as fast as this thread: any limit may pass before
  // the evaluation looks again.
  JobEvaluation::Options options;
  options.directory_timeout = absl::InfiniteDuration();
  Start(options);
  LetTimePassUntil([&] { return clock_.waits() >= 3; });
  std::filesystem::rename(late, checkpoint_dir());
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10));
}

TEST_F(JobEvaluationTest, TheFirstCheckpointThatIsAwaitedIsSaid) {
  chief_.Miss("ps/1");
  testing::internal::CaptureStderr();
  Start();
  // It pauses behind its first look.
  LetTimePassUntil([&] { return clock_.waits() >= 1; });
  evaluation_->Stop();
  EXPECT_THAT(AwaitResult(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("waiting for the first checkpoint to evaluate in " +
                        checkpoint_dir() +
                        ", which the chief orders; the chief waits for ps/1"));
}

TEST_F(JobEvaluationTest, AFailedJobEndsItWithTheChiefsReason) {
  chief_.Say(wire::FAILED, "worker/1: loss is not finite");

  EXPECT_THAT(RunToTheEnd(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                      HasSubstr("loss is not finite")));
  EXPECT_TRUE(chief_.was_left());
}

TEST_F(JobEvaluationTest, AChiefThatIsLostDuringTheJobIsUnavailable) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  Start();
  AwaitEvaluations(1);
  chief_.Disappear();

  EXPECT_THAT(AwaitResult(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("chief at h0:2222")));
}

TEST_F(JobEvaluationTest, AChiefThatIsLostAfterTheFinalCheckpointIsNoError) {
  Start();
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/false));
  AwaitEvaluations(1);
  ASSERT_OK(WriteCheckpoint(20, Identity(), /*final=*/true));
  chief_.Disappear();

  EXPECT_OK(AwaitResult());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 20));
}

TEST_F(JobEvaluationTest, AFinalCheckpointOfAJobThatGoesOnIsNotTheEnd) {
  ASSERT_OK(WriteCheckpoint(10, Identity(), /*final=*/true));
  Start();
  AwaitEvaluations(1);
  chief_.Disappear();

  EXPECT_THAT(AwaitResult(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(JobEvaluationTest, StoppingIsCancelled) {
  Start();
  evaluation_->Stop();
  evaluation_->Stop();

  EXPECT_THAT(AwaitResult(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(JobEvaluationTest, AJobWithoutEvalDataIsFollowedToItsEnd) {
  chief_.ForgetEval();
  Start();
  chief_.Say(wire::COMPLETE);

  EXPECT_OK(AwaitResult());
  EXPECT_TRUE(Evaluations().empty());
}

TEST_F(JobEvaluationTest, MissingEvalDataEndsItAndNotTheJob) {
  std::filesystem::remove(data_dir() + "/images");

  EXPECT_THAT(RunToTheEnd(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("images")));
  evaluation_.reset();
  EXPECT_TRUE(chief_.was_left());
}

}  // namespace
}  // namespace parasol
