#include "worker/step/replica_source.h"

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/client/testing/fake_chief.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

// Answers what it is told to, and remembers what it was asked.
class ScriptedChief : public FakeChief {
 public:
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request) override {
    absl::MutexLock lock(&mu_);
    ++calls_;
    last_ = request;
    if (!failure_.ok()) return failure_;
    return answer_;
  }

  void Answer(wire::JobPhase phase, int64_t version, std::vector<int> replicas,
              int64_t global_step, int64_t end_step) {
    absl::MutexLock lock(&mu_);
    answer_.Clear();
    answer_.set_phase(phase);
    answer_.set_assignment_version(version);
    for (int replica : replicas) answer_.add_replica(replica);
    answer_.set_global_step(global_step);
    answer_.set_end_step(end_step);
  }
  void Fail(absl::Status failure) {
    absl::MutexLock lock(&mu_);
    failure_ = std::move(failure);
  }
  // The last of at least so many requests more.
  wire::ClaimStepsRequest NextRequest(int more = 2) {
    absl::MutexLock lock(&mu_);
    const int until = calls_ + more;
    const auto asked = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return calls_ >= until;
    };
    mu_.Await(absl::Condition(&asked));
    return last_;
  }

 private:
  absl::Mutex mu_;
  wire::ClaimStepsResponse answer_ ABSL_GUARDED_BY(mu_);
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  wire::ClaimStepsRequest last_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
};

class ChiefReplicaSourceTest : public testing::Test {
 protected:
  std::unique_ptr<ChiefReplicaSource> MakeSource() {
    ChiefReplicaSource::Options options;
    options.report_interval = absl::Milliseconds(1);
    options.finishing_interval = absl::Milliseconds(1);
    return ChiefReplicaSource::Create(options, chief_, Clock::Real());
  }

  ScriptedChief chief_;
};

TEST_F(ChiefReplicaSourceTest, AwaitReturnsTheShareWhenThereIsOne) {
  chief_.Answer(wire::TRAINING, 7, {}, 0, 10);
  auto source = MakeSource();
  EXPECT_TRUE(chief_.NextRequest().has_wait()) << "it has nothing to do";
  chief_.Answer(wire::TRAINING, 8, {1, 3}, 4, 10);
  ASSERT_OK_AND_ASSIGN(const auto share, source->Await());
  ASSERT_TRUE(share.has_value());
  EXPECT_EQ(share->version, 8);
  EXPECT_THAT(share->replicas, ElementsAre(1, 3));
  EXPECT_EQ(share->completed_steps, 4);
  EXPECT_EQ(share->end_step, 10);
  EXPECT_FALSE(chief_.NextRequest().has_wait()) << "it has steps to report";
}

TEST_F(ChiefReplicaSourceTest, WhatIsCompletedIsReportedAndNeverFalls) {
  chief_.Answer(wire::TRAINING, 1, {0}, 4, 10);
  auto source = MakeSource();
  ASSERT_OK(source->Await());
  source->Complete(6);
  source->Complete(5);
  EXPECT_EQ(chief_.NextRequest().completed_steps(), 6);
  chief_.Answer(wire::TRAINING, 1, {0}, 2, 10);
  EXPECT_EQ(chief_.NextRequest().completed_steps(), 6);
  EXPECT_EQ(source->completed_steps(), 6);
}

TEST_F(ChiefReplicaSourceTest, NothingMoreIsToldWhenTheJobIsComplete) {
  chief_.Answer(wire::TRAINING, 1, {0}, 0, 10);
  auto source = MakeSource();
  ASSERT_OK(source->Await());
  source->Complete(10);
  chief_.Answer(wire::COMPLETE, 1, {0}, 10, 10);
  ASSERT_OK_AND_ASSIGN(const auto share, source->Await());
  EXPECT_FALSE(share.has_value());
}

TEST_F(ChiefReplicaSourceTest, TheChiefHearsOfTheEndUntilTheJobIsComplete) {
  chief_.Answer(wire::TRAINING, 1, {0}, 0, 10);
  auto source = MakeSource();
  ASSERT_OK(source->Await());
  source->Complete(10);
  chief_.Answer(wire::FINISHING, 1, {0}, 10, 10);
  EXPECT_EQ(chief_.NextRequest(5).completed_steps(), 10);
  // A restarted chief knows no more than its checkpoint.
  chief_.Answer(wire::TRAINING, 2, {0}, 4, 10);
  EXPECT_EQ(chief_.NextRequest(5).completed_steps(), 10);
  chief_.Answer(wire::COMPLETE, 2, {0}, 10, 10);
  ASSERT_OK_AND_ASSIGN(const auto share, source->Await());
  EXPECT_FALSE(share.has_value());
}

TEST_F(ChiefReplicaSourceTest, AnotherAssignmentIsSeenWithoutWaiting) {
  chief_.Answer(wire::TRAINING, 1, {0}, 0, 10);
  auto source = MakeSource();
  ASSERT_OK(source->Await());
  chief_.Answer(wire::TRAINING, 2, {0, 1}, 0, 10);
  chief_.NextRequest(3);
  ASSERT_OK_AND_ASSIGN(const ReplicaShare now, source->Now());
  EXPECT_EQ(now.version, 2);
}

TEST_F(ChiefReplicaSourceTest, AChiefThatIsAwayChangesNothing) {
  chief_.Answer(wire::TRAINING, 1, {0}, 0, 10);
  auto source = MakeSource();
  ASSERT_OK(source->Await());
  chief_.Fail(absl::UnavailableError("connection refused"));
  chief_.NextRequest();
  EXPECT_OK(source->Now());
  EXPECT_OK(source->Await());
}

TEST_F(ChiefReplicaSourceTest, AChiefThatRefusesEndsTheLoop) {
  chief_.Fail(absl::InvalidArgumentError("train_examples is 7, not 8"));
  auto source = MakeSource();
  EXPECT_THAT(source->Await(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ChiefReplicaSourceTest, AnswersAndBrokenAssignmentsGoThrough) {
  chief_.Answer(wire::TRAINING, 8, {1}, 4, 10);
  absl::Mutex mu;
  int64_t heard = 0;
  ChiefReplicaSource::Options options;
  options.report_interval = absl::Milliseconds(1);
  options.on_answer = [&](const wire::ClaimStepsResponse& answer) {
    absl::MutexLock lock(&mu);
    heard = answer.assignment_version();
  };
  options.broken_assignment = [] { return 8; };
  auto source = ChiefReplicaSource::Create(options, chief_, Clock::Real());
  ASSERT_OK(source->Await());
  EXPECT_EQ(chief_.NextRequest().broken_assignment(), 8);
  absl::MutexLock lock(&mu);
  EXPECT_EQ(heard, 8);
}

TEST_F(ChiefReplicaSourceTest, StepsThatAWorkerWithoutAReplicaHasAreReported) {
  chief_.Answer(wire::TRAINING, 1, {}, 0, 10);
  ChiefReplicaSource::Options options;
  options.report_interval = absl::Milliseconds(1);
  options.completed_steps = [] { return 10; };
  auto source = ChiefReplicaSource::Create(options, chief_, Clock::Real());
  EXPECT_EQ(chief_.NextRequest().completed_steps(), 10);
  EXPECT_EQ(source->completed_steps(), 10);
}

TEST_F(ChiefReplicaSourceTest, StepsThatOnlyOthersHadAreNotReported) {
  chief_.Answer(wire::TRAINING, 1, {0}, /*global_step=*/5, 10);
  ChiefReplicaSource::Options options;
  options.report_interval = absl::Milliseconds(1);
  options.completed_steps = [] { return 4; };
  auto source = ChiefReplicaSource::Create(options, chief_, Clock::Real());
  ASSERT_OK_AND_ASSIGN(const auto share, source->Await());
  EXPECT_EQ(share->completed_steps, 4);
  EXPECT_EQ(chief_.NextRequest().completed_steps(), 4);
  source->Complete(5);
  EXPECT_EQ(source->completed_steps(), 4);
}

TEST_F(ChiefReplicaSourceTest, StepsThatWereLostAreMadeWhileTheJobIsFinishing) {
  chief_.Answer(wire::FINISHING, 1, {0}, /*global_step=*/10, 10);
  ChiefReplicaSource::Options options;
  options.report_interval = absl::Milliseconds(1);
  options.completed_steps = [] { return 9; };
  auto source = ChiefReplicaSource::Create(options, chief_, Clock::Real());
  ASSERT_OK_AND_ASSIGN(const auto share, source->Await());
  ASSERT_TRUE(share.has_value());
  EXPECT_EQ(share->completed_steps, 9);
}

TEST_F(ChiefReplicaSourceTest, StopUnblocksAWait) {
  chief_.Answer(wire::TRAINING, 1, {}, 0, 10);
  auto source = MakeSource();
  std::thread waiter([&] {
    EXPECT_THAT(source->Await(), StatusIs(absl::StatusCode::kCancelled));
  });
  chief_.NextRequest();
  source->Stop();
  waiter.join();
}

}  // namespace
}  // namespace parasol
