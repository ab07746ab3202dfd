#include "cluster/client/same_job.h"

#include <functional>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

wire::RegisterResponse Joined() {
  wire::RegisterResponse joined;
  joined.set_run_id("run-a");
  joined.set_layout(5);
  joined.mutable_job()->mutable_train()->set_batch_size(32);
  joined.mutable_job()->mutable_optimizer()->mutable_sgd()->set_learning_rate(
      .1);
  joined.mutable_job()->mutable_model()->add_sparse_table()->set_name("users");
  return joined;
}

struct Case {
  std::string name;
  std::function<void(wire::RegisterResponse&)> change;
  absl::StatusCode worker;
  absl::StatusCode evaluator;
};

TEST(SameJob, ATaskGoesOnUnlessWhatItGoesByHasChanged) {
  constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
  constexpr absl::StatusCode kAgain = absl::StatusCode::kUnavailable;
  const Case cases[] = {
      {"nothing", [](auto&) {}, kOk, kOk},
      {"the chief", [](auto& now) { now.set_chief_epoch(9); }, kOk, kOk},
      {"the run", [](auto& now) { now.set_run_id("run-b"); }, kAgain, kOk},
      {"the layout", [](auto& now) { now.set_layout(6); }, kAgain, kOk},
      {"the batch",
       [](auto& now) {
         now.mutable_job()->mutable_train()->set_batch_size(64);
       },
       kAgain, kOk},
      {"the clipping",
       [](auto& now) {
         now.mutable_job()->mutable_optimizer()->set_clipnorm(1);
       },
       kAgain, kOk},
      {"the rate, which is the ps's",
       [](auto& now) {
         now.mutable_job()
             ->mutable_optimizer()
             ->mutable_sgd()
             ->set_learning_rate(.01);
       },
       kOk, kOk},
      {"the end",
       [](auto& now) { now.mutable_job()->mutable_end()->set_steps(9); }, kOk,
       kOk},
      {"the clipping of a table",
       [](auto& now) {
         now.mutable_job()
             ->mutable_model()
             ->mutable_sparse_table(0)
             ->mutable_optimizer()
             ->set_clipvalue(1);
       },
       kAgain, kAgain},
      {"the model",
       [](auto& now) {
         now.mutable_job()
             ->mutable_model()
             ->mutable_loss()
             ->mutable_mean_squared_error();
       },
       kAgain, kAgain},
      {"the evaluation",
       [](auto& now) { now.mutable_job()->mutable_eval()->set_batch_size(9); },
       kOk, kAgain},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    wire::RegisterResponse now = Joined();
    c.change(now);
    EXPECT_THAT(CheckWorkerGoesOn(Joined(), now), StatusIs(c.worker));
    EXPECT_THAT(CheckEvaluatorGoesOn(Joined(), now), StatusIs(c.evaluator));
  }
}

TEST(SameJob, AWorkerThatHasTheVariablesGoesByTheRate) {
  wire::RegisterResponse joined = Joined();
  joined.mutable_job()->mutable_strategy()->mutable_multi_worker_mirrored();
  wire::RegisterResponse now = joined;
  EXPECT_OK(CheckWorkerGoesOn(joined, now));
  now.mutable_job()->mutable_end()->set_steps(9);
  EXPECT_OK(CheckWorkerGoesOn(joined, now));
  now.mutable_job()->mutable_optimizer()->mutable_sgd()->set_learning_rate(.01);
  EXPECT_THAT(CheckWorkerGoesOn(joined, now),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("learning_rate: 0.1 -> 0.01")));
}

TEST(SameJob, TheErrorSaysWhatHasChanged) {
  wire::RegisterResponse now = Joined();
  now.mutable_job()->mutable_train()->set_batch_size(64);
  EXPECT_THAT(CheckWorkerGoesOn(Joined(), now),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("train.batch_size: 32 -> 64")));
}

TEST(SameJob, WhatIsNotSaidIsNotCompared) {
  EXPECT_OK(CheckVariables(Joined(), "", 0));
  EXPECT_OK(CheckVariables(Joined(), "run-a", 5));
  EXPECT_THAT(CheckVariables(Joined(), "run-b", 0),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("initialised anew, as run run-b")));
  EXPECT_THAT(CheckVariables(Joined(), "", 6),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
