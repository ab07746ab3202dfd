#include "chief/kubeflow/progress_poster.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A job and a server, whose answers the test sets.
class FakeTrainer {
 public:
  FakeTrainer() { SetPhase(wire::TRAINING); }

  ProgressPoster::Options Options() {
    return {.status =
                [this] {
                  absl::MutexLock lock(&mu_);
                  return status_;
                },
            .post =
                [this](const std::string& body, absl::Duration timeout,
                       const std::atomic<bool>& cancelled) {
                  absl::MutexLock lock(&mu_);
                  bodies_.push_back(body);
                  timeouts_.push_back(timeout);
                  if (!hangs_) return absl::OkStatus();
                  // As long as libcurl would wait.
                  const auto is_cancelled = [&cancelled] {
                    return cancelled.load();
                  };
                  while (!is_cancelled()) {
                    mu_.AwaitWithTimeout(absl::Condition(&is_cancelled),
                                         absl::Milliseconds(1));
                  }
                  return absl::CancelledError("stopped");
                }};
  }

  void SetPhase(wire::JobPhase phase) {
    absl::MutexLock lock(&mu_);
    status_.set_phase(phase);
    if (phase == wire::TRAINING) {
      status_.set_loss(.25);
    } else {
      // The workers have left.
      status_.clear_loss();
    }
    status_.set_global_step(10);
    status_.set_end_step(100);
  }
  void SetHangs(bool hangs) {
    absl::MutexLock lock(&mu_);
    hangs_ = hangs;
  }
  // Blocks until the server has been asked so often.
  void AwaitPosts(size_t posts) {
    absl::MutexLock lock(&mu_);
    const auto has_come = [&] { return bodies_.size() >= posts; };
    mu_.Await(absl::Condition(&has_come));
  }
  std::vector<std::string> bodies() {
    absl::MutexLock lock(&mu_);
    return bodies_;
  }
  std::vector<absl::Duration> timeouts() {
    absl::MutexLock lock(&mu_);
    return timeouts_;
  }

 private:
  absl::Mutex mu_;
  wire::JobStatus status_;
  bool hangs_ = false;
  std::vector<std::string> bodies_;
  std::vector<absl::Duration> timeouts_;
};

TEST(ProgressPosterTest, TheEndOfAJobIsPostedHoweverShortItWas) {
  FakeTrainer trainer;
  SimulatedClock clock;
  {
    ProgressPoster poster(trainer.Options(), clock);
    trainer.AwaitPosts(1);
    trainer.SetPhase(wire::COMPLETE);
  }
  EXPECT_THAT(trainer.bodies(),
              ElementsAre(HasSubstr(R"("progressPercentage":10,)"),
                          AllOf(HasSubstr(R"("progressPercentage":100,)"),
                                HasSubstr(R"("name":"loss","value":"0.25")"))));
  EXPECT_THAT(trainer.timeouts(), ElementsAre(ProgressPoster::kTimeout,
                                              ProgressPoster::kLastTimeout));
}

TEST(ProgressPosterTest, AChiefThatIsStoppedPostsNoEnd) {
  FakeTrainer trainer;
  SimulatedClock clock;
  {
    ProgressPoster poster(trainer.Options(), clock);
    trainer.AwaitPosts(1);
  }
  EXPECT_EQ(trainer.bodies().size(), 1u);
}

TEST(ProgressPosterTest, AServerThatHangsHoldsUpNeitherTheEndNorOthers) {
  FakeTrainer trainer;
  trainer.SetHangs(true);
  SimulatedClock clock;
  auto poster = std::make_unique<ProgressPoster>(trainer.Options(), clock);
  trainer.AwaitPosts(1);
  // Does not wait for the post.
  poster->Evaluated({.global_step = 5});
  trainer.SetHangs(false);
  poster.reset();
  EXPECT_EQ(trainer.bodies().size(), 2u) << "the post at the end";
}

TEST(ProgressPosterTest, TheNewestEvaluationIsInTheNextPost) {
  FakeTrainer trainer;
  SimulatedClock clock;
  {
    ProgressPoster poster(trainer.Options(), clock);
    trainer.AwaitPosts(1);
    poster.Evaluated({.global_step = 5, .loss = .5});
    trainer.SetPhase(wire::FAILED);
  }
  EXPECT_THAT(trainer.bodies().back(),
              HasSubstr(R"({"name":"eval_loss","value":"0.5"})"));
}

}  // namespace
}  // namespace parasol
