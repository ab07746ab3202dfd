// Gradients of variables that ps hold, on their way there while others are
// computed.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/optimizer.h"
#include "loop/peers/lone_peers.h"
#include "loop/strategy.h"
#include "loop/variable.h"
#include "ml/tape/custom_operation.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"
#include "parameters/training_parameters.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Parameters that subtract what is pushed, when it is waited for, and note what
// they are asked.
class LateParameters : public TrainingParameters {
 public:
  std::unique_ptr<Pending> Pull(PullRequest request) override {
    return std::make_unique<Late>([this, request = std::move(request)] {
      absl::MutexLock lock(&mu_);
      for (const Target& target : request.targets) {
        std::vector<float>& value = values_[target.variable];
        value.resize(target.values.size(), 1);
        std::copy(value.begin(), value.end(), target.values.begin());
      }
      return fault_;
    });
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    std::vector<size_t> variables;
    for (const Gradient& one : request.gradients) {
      variables.push_back(one.variable);
    }
    Note(absl::StrCat("push ", absl::StrJoin(variables, " ")));
    return std::make_unique<Late>([this, request = std::move(request)] {
      Note("applied");
      absl::MutexLock lock(&mu_);
      for (const Gradient& one : request.gradients) {
        std::vector<float>& value = values_[one.variable];
        value.resize(one.values.size(), 1);
        for (size_t i = 0; i < value.size(); ++i) value[i] -= one.values[i];
      }
      return fault_;
    });
  }
  Awaited Unanswered() const override { return {}; }
  void Stop() override {}

  void Note(absl::string_view note) {
    absl::MutexLock lock(&mu_);
    notes_.emplace_back(note);
  }
  std::vector<std::string> TakeNotes() {
    absl::MutexLock lock(&mu_);
    return std::exchange(notes_, {});
  }
  void Fail(absl::Status fault) {
    absl::MutexLock lock(&mu_);
    fault_ = std::move(fault);
  }

 private:
  // Does its work when it is waited for.
  class Late : public Pending {
   public:
    explicit Late(std::function<absl::Status()> work)
        : work_(std::move(work)) {}
    absl::Status Wait() override { return work_(); }
    bool WaitFor(absl::Duration) override { return true; }
    TrainingParameters::Outcome outcome() const override { return {}; }

   private:
    const std::function<absl::Status()> work_;
  };

  absl::Mutex mu_;
  std::map<size_t, std::vector<float>> values_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> notes_ ABSL_GUARDED_BY(mu_);
  absl::Status fault_ ABSL_GUARDED_BY(mu_);
};

class SharingPeers : public LonePeers {
 public:
  SharingPeers(int replicas, TrainingParameters& parameters)
      : LonePeers(replicas), parameters_(parameters) {}
  TrainingParameters* shared() override { return &parameters_; }

 private:
  TrainingParameters& parameters_;
};

class SharedPushTest : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int64_t kLarge = TrainingParameters::kPackElements;

  SharedPushTest()
      : strategy_(*Strategy::WithPeers(
            std::vector<std::string>(GetParam(), "cpu"), {},
            std::make_unique<SharingPeers>(GetParam(), parameters_))),
        scope_(*strategy_),
        below_(*Variable::Create("below", Ones({4}))),
        first_(*Variable::Create("first", Ones({kLarge}))),
        last_(*Variable::Create("last", Ones({kLarge}))) {
    strategy_->EndAfter(100);
  }

  // Returns x, whose gradient is noted when it is computed.
  Tensor Noted(const Tensor& x, const std::string& note, float factor = 1) {
    const Tensor same = Tensor::Of(x.values(), x.shape());
    auto operation = std::make_shared<CustomOperation>();
    operation->name = note;
    operation->gradient = [this, note, factor](const CustomGradientCall& call)
        -> absl::StatusOr<std::vector<Tensor>> {
      if (World::Current()->current_local() == 0) parameters_.Note(note);
      if (note == fails_) return absl::OutOfRangeError("no more");
      return std::vector<Tensor>{factor * call.d_outputs[0]};
    };
    RecordCustom({x}, {same}, std::move(operation));
    return same;
  }

  // A loss whose gradients come in the order last, first, below, each replica's
  // .25 by each element, but for `factor` by first.
  Tensor Loss(float factor = 1) {
    const Tensor a = ReduceSum(Noted(below_, "below"));
    const Tensor b = ReduceSum(Noted(first_, "first", factor)) + a;
    return .25f * (ReduceSum(Noted(last_, "last")) + b);
  }

  LateParameters parameters_;
  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
  const Variable below_, first_, last_;
  std::string fails_;  // the note whose gradient fails
};

TEST_P(SharedPushTest, LargeGradientsLeaveWhileOthersAreComputed) {
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", {below_, first_, last_}));
  ASSERT_OK(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(Loss(), tape);
  }));
  if (GetParam() == 1) {
    EXPECT_THAT(parameters_.TakeNotes(),
                ElementsAre("last", "push 2", "first", "push 1", "below",
                            "push 0", "applied", "applied", "applied"));
  }
  for (const Variable& variable : {below_, first_, last_}) {
    EXPECT_THAT(variable.Read().values(),
                Each(1 - .25f * static_cast<float>(GetParam())));
  }
}

// What is clipped by all gradients waits for them.
TEST_P(SharedPushTest, ClippedGradientsLeaveTogether) {
  ASSERT_OK_AND_ASSIGN(const Optimizer sgd,
                       Optimizer::Create("sgd", "sgd {} global_clipnorm: 1000",
                                         {below_, first_, last_}));
  ASSERT_OK(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(Loss(), tape);
  }));
  EXPECT_THAT(parameters_.TakeNotes(),
              ElementsAre("last", "first", "below", "push 0 1 2", "applied"));
}

TEST_P(SharedPushTest, AGradientThatIsNotFiniteIsNotPushed) {
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", {below_, first_, last_}));
  EXPECT_THAT(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(Loss(std::nanf("")), tape);
  }),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("gradient of first has nan"),
                             HasSubstr("its variable was not updated"))));
  // What had left has been waited for.
  const std::vector<std::string> notes = parameters_.TakeNotes();
  EXPECT_EQ(notes.back(), "applied");
  EXPECT_THAT(first_.Read().values(), Each(1));
  EXPECT_THAT(below_.Read().values(), Each(1));
  ASSERT_OK(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(Loss(), tape);
  }));
  EXPECT_THAT(first_.Read().values(),
              Each(1 - .25f * static_cast<float>(GetParam())));
}

// The sum is all replicas': none of them is at fault.
TEST_P(SharedPushTest, AnEarlyErrorNamesNoReplica) {
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", {below_, first_, last_}));
  for (int step = 0; step < 2; ++step) {
    EXPECT_THAT(strategy_->Run([&](ReplicaContext&) {
      GradientTape tape;
      return sgd.Minimize(Loss(std::nanf("")), tape);
    }),
                StatusIs(absl::StatusCode::kOutOfRange,
                         StartsWith("the gradient of first has nan")));
    EXPECT_THAT(parameters_.TakeNotes(),
                AllOf(Contains("push 2"), Not(Contains("push 1")),
                      Not(Contains("push 0"))));
  }
}

TEST_P(SharedPushTest, AStepThatFailsWaitsForWhatHasLeft) {
  fails_ = "first";
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", {below_, first_, last_}));
  EXPECT_THAT(strategy_->Run([&](ReplicaContext&) {
    GradientTape tape;
    return sgd.Minimize(Loss(), tape);
  }),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("no more")));
  const std::vector<std::string> notes = parameters_.TakeNotes();
  EXPECT_THAT(notes, AllOf(Contains("push 2"), Not(Contains("push 1"))));
  EXPECT_EQ(notes.back(), "applied");
  EXPECT_THAT(last_.Read().values(),
              Each(1 - .25f * static_cast<float>(GetParam())));
}

TEST_P(SharedPushTest, APushThatFailsIsTheUpdatesError) {
  ASSERT_OK_AND_ASSIGN(
      const Optimizer sgd,
      Optimizer::Create("sgd", "sgd {}", {below_, first_, last_}));
  ASSERT_OK(strategy_->Run([](ReplicaContext&) {}));
  EXPECT_THAT(parameters_.TakeNotes(), IsEmpty());
  EXPECT_THAT(strategy_->Run([&](ReplicaContext&) {
    parameters_.Fail(absl::UnavailableError("ps/1 does not answer"));
    GradientTape tape;
    return sgd.Minimize(Loss(), tape);
  }),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("optimizer sgd: ps/1 does not answer")));
}

INSTANTIATE_TEST_SUITE_P(Replicas, SharedPushTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace parasol::loop
