#include "worker/step/step_source.h"

#include <functional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "cluster/client/testing/fake_chief.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Optional;

// A chief that grants up to `end` steps to its one worker.
class GrantingChief : public FakeChief {
 public:
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request) override {
    absl::MutexLock lock(&mu_);
    ++calls_;
    completed_ = request.completed_steps();
    if (request.has_wait()) ++waiting_calls_;
    if (!failures_.empty()) {
      const absl::Status failure = failures_.back();
      failures_.pop_back();
      return failure;
    }
    granted_ = std::min(end_, granted_ + request.want());
    wire::ClaimStepsResponse response;
    response.set_granted_steps(granted_);
    wire::BatchRange* batches = response.add_batch();
    batches->set_first(100 + completed_);
    batches->set_count(granted_ + 2 - completed_);
    response.set_steps_before_batches(completed_);
    response.set_phase(completed_ >= end_ ? end_phase_ : phase_);
    return response;
  }

  void set_end(int64_t end) {
    absl::MutexLock lock(&mu_);
    end_ = end;
  }
  // Sets the phase that the chief answers when the end is reached.
  void set_end_phase(wire::JobPhase phase) {
    absl::MutexLock lock(&mu_);
    end_phase_ = phase;
  }
  void set_phase(wire::JobPhase phase) {
    absl::MutexLock lock(&mu_);
    phase_ = phase;
  }
  void FailNext(absl::Status failure) {
    absl::MutexLock lock(&mu_);
    failures_.push_back(std::move(failure));
  }
  void AwaitCalls(int calls) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return calls_ >= calls;
    };
    mu_.Await(absl::Condition(&enough));
  }
  void AwaitMoreCalls(int calls) {
    absl::MutexLock lock(&mu_);
    const int until = calls_ + calls;
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return calls_ >= until;
    };
    mu_.Await(absl::Condition(&enough));
  }
  int waiting_calls() {
    absl::MutexLock lock(&mu_);
    return waiting_calls_;
  }
  int64_t completed() {
    absl::MutexLock lock(&mu_);
    return completed_;
  }

 private:
  absl::Mutex mu_;
  int64_t end_ ABSL_GUARDED_BY(mu_) = 10;
  int64_t granted_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_calls_ ABSL_GUARDED_BY(mu_) = 0;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  wire::JobPhase phase_ ABSL_GUARDED_BY(mu_) = wire::TRAINING;
  wire::JobPhase end_phase_ ABSL_GUARDED_BY(mu_) = wire::COMPLETE;
  std::vector<absl::Status> failures_ ABSL_GUARDED_BY(mu_);
};

class ChiefStepSourceTest : public testing::Test {
 protected:
  std::unique_ptr<ChiefStepSource> MakeSource() {
    ChiefStepSource::Options options;
    options.report_interval = absl::Milliseconds(1);
    options.finishing_interval = absl::Milliseconds(1);
    return ChiefStepSource::Create(options, chief_, Clock::Real());
  }

  GrantingChief chief_;
};

TEST_F(ChiefStepSourceTest, EveryStepUpToTheEndIsStartedAndReported) {
  chief_.set_end(100);
  auto source = MakeSource();
  int started = 0;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const auto batch, source->Start());
    if (!batch) break;
    EXPECT_EQ(*batch, 100 + started++);
    source->Complete();
  }
  EXPECT_EQ(started, 100);
  EXPECT_EQ(chief_.completed(), 100);
}

TEST_F(ChiefStepSourceTest, ARestartedChiefThatKnowsLessGrantsMoreAtTheEnd) {
  chief_.set_end(1);
  chief_.set_end_phase(wire::FINISHING);
  auto source = MakeSource();
  ASSERT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
  source->Complete();
  // The chief writes the last checkpoint: it hears of this worker meanwhile.
  chief_.AwaitMoreCalls(5);
  EXPECT_EQ(chief_.completed(), 1);
  EXPECT_FALSE(source->CanStartNow());
  // Its successor misses a step that a worker had done that is gone.
  chief_.FailNext(absl::UnavailableError("connection refused"));
  chief_.set_end(2);
  EXPECT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
  chief_.set_end_phase(wire::COMPLETE);
  source->Complete();
  EXPECT_THAT(source->Start(), IsOkAndHolds(std::nullopt));
}

TEST_F(ChiefStepSourceTest, NoStepIsStartedWhileTheLastCheckpointIsWritten) {
  chief_.set_phase(wire::FINISHING);
  auto source = MakeSource();
  chief_.AwaitMoreCalls(3);
  EXPECT_FALSE(source->CanStartNow());
  chief_.set_phase(wire::TRAINING);
  EXPECT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
}

TEST_F(ChiefStepSourceTest, BatchesBeyondTheGrantAreUpcomingAndNotStarted) {
  chief_.set_end(1);
  auto source = MakeSource();
  EXPECT_THAT(source->Start(), IsOkAndHolds(Optional(100)));
  chief_.AwaitMoreCalls(2);
  EXPECT_FALSE(source->CanStartNow());
  EXPECT_THAT(source->Upcoming(), ElementsAre(101, 102));
}

TEST_F(ChiefStepSourceTest, AChiefThatIsAwayIsAskedAgain) {
  chief_.FailNext(absl::NotFoundError("register first"));
  chief_.FailNext(absl::UnavailableError("connection refused"));
  chief_.FailNext(absl::UnknownError("Stream removed"));
  auto source = MakeSource();
  EXPECT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
}

TEST_F(ChiefStepSourceTest, AChiefThatRefusesEndsTheLoop) {
  chief_.FailNext(absl::InvalidArgumentError("train_examples is 7, not 8"));
  auto source = MakeSource();
  EXPECT_THAT(source->Start(), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("train_examples")));
}

TEST_F(ChiefStepSourceTest, AJobThatFailedElsewhereEndsTheLoop) {
  chief_.set_end(0);
  chief_.set_phase(wire::FAILED);
  chief_.set_end(1);
  auto source = MakeSource();
  auto more = source->Start();
  while (more.ok() && *more) more = source->Start();
  EXPECT_THAT(more, StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ChiefStepSourceTest, OnlyALoopWithNothingLeftToReportWaitsAtTheChief) {
  chief_.set_end(1);
  auto source = MakeSource();
  ASSERT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
  const int before = chief_.waiting_calls();
  chief_.AwaitMoreCalls(5);
  EXPECT_EQ(chief_.waiting_calls(), before);
  chief_.set_end(2);
  source->Complete();
  EXPECT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
}

TEST_F(ChiefStepSourceTest, StopUnblocksAStartThatWaits) {
  chief_.set_end(1);
  auto source = MakeSource();
  ASSERT_THAT(source->Start(), IsOkAndHolds(Optional(Ge(100))));
  std::thread waiter([&] {
    EXPECT_THAT(source->Start(), StatusIs(absl::StatusCode::kCancelled));
  });
  chief_.AwaitCalls(3);  // the waiter's step is not coming
  source->Stop();
  waiter.join();
}

}  // namespace
}  // namespace parasol
