#include "loop/peers/local_steps.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/peers/program_settings.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGood[] = "steps: 10 outer { sgd { learning_rate: 0.5 } }";

TEST(ProgramLocalStepsTest, WhatProgramsLackIsRefused) {
  ASSERT_OK_AND_ASSIGN(const job::LocalSteps local, ParseLocalSteps(kGood));
  EXPECT_EQ(local.steps(), 10);
  EXPECT_EQ(local.outer().sgd().learning_rate(), .5);
  const auto fault_of = [](const std::string& text) {
    const absl::Status status = ParseLocalSteps(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    return std::string(status.message());
  };
  const std::string outer = " outer { sgd { learning_rate: 0.5 } }";
  EXPECT_THAT(fault_of("10"), HasSubstr("write it as in a job file: steps:"));
  EXPECT_THAT(fault_of("steps: 10"), StartsWith("outer: "));
  EXPECT_THAT(fault_of(outer), StartsWith("steps: "));
  EXPECT_THAT(fault_of("steps: 0" + outer), StartsWith("steps: 0"));
  EXPECT_THAT(fault_of("steps: 10 fragments: 2" + outer),
              StartsWith("fragments: a program exchanges all variables"));
  EXPECT_THAT(fault_of("steps: 10 overlap_steps: 2" + outer),
              StartsWith("overlap_steps: a program exchanges"));
  EXPECT_THAT(fault_of("steps: 10 inner { sgd {} }" + outer),
              StartsWith("inner: the program's optimizers"));
  EXPECT_THAT(fault_of("steps: 10 batch_size: 8" + outer),
              StartsWith("batch_size: the program's"));
  EXPECT_THAT(fault_of("steps: 10 outer { lamb {} }"),
              StartsWith("outer.lamb: needs whole variables"));
  EXPECT_THAT(
      fault_of("steps: 10 outer { sgd {} reduce_on_plateau { factor: 0.1 } }"),
      StartsWith("outer.reduce_on_plateau: a program has no evaluations"));
  EXPECT_THAT(fault_of("steps: 10 outer { sgd {} clipnorm: 1 }"),
              StartsWith("outer: differences of local steps are not clipped"));
  EXPECT_THAT(fault_of("steps: 10 outer { sgd { learning_rate: -1 } }"),
              HasSubstr("outer: sgd.learning_rate is -1"));
}

TEST(ProgramLocalStepsTest, AnOptimizerOfLocalStepsIsAWorkersOwn) {
  ASSERT_OK_AND_ASSIGN(const job::LocalSteps local, ParseLocalSteps(kGood));
  job::Optimizer inner;
  inner.mutable_adam();
  inner.set_global_clipnorm(1);
  EXPECT_OK(CheckMakesLocalSteps(inner, local));
  inner.mutable_ema();
  EXPECT_THAT(
      CheckMakesLocalSteps(inner, local),
      StatusIs(absl::StatusCode::kInvalidArgument,
               StartsWith("optimizer.ema: local steps are a worker's")));
}

// As in a job whose defaults are filled in, and filling them in changes nothing
// more.
TEST(ProgramLocalStepsTest, TheOptimizersChangePlaces) {
  ASSERT_OK_AND_ASSIGN(const job::LocalSteps local, ParseLocalSteps(kGood));
  job::Job job;
  job.mutable_optimizer()->mutable_adam()->set_learning_rate(.25);
  job.mutable_model()->add_layer()->mutable_custom()->set_type("first");
  job::Layer& layer = *job.mutable_model()->add_layer();
  layer.mutable_custom()->set_type("second");
  layer.mutable_optimizer()->mutable_adagrad()->set_learning_rate(.125);
  UseLocalSteps(local, job);
  const job::Job program = JobOfProgram(job, {}, 100);
  EXPECT_EQ(program.optimizer().sgd().learning_rate(), .5);
  const job::LocalSteps& steps = program.parameter_server().local_steps();
  EXPECT_EQ(steps.steps(), 10);
  EXPECT_FALSE(steps.has_outer());
  EXPECT_EQ(steps.inner().adam().learning_rate(), .25);
  EXPECT_FALSE(program.model().layer(1).has_optimizer());
  EXPECT_EQ(program.model().layer(0).custom().parameter_size(), 0);
  ASSERT_EQ(program.model().layer(1).custom().parameter_size(), 1);
  EXPECT_THAT(program.model().layer(1).custom().parameter(0).value(),
              HasSubstr("adagrad { learning_rate: 0.125 }"));
}

// Whether a damaged checkpoint is passed over is not for this check to say.
TEST(ProgramLocalStepsTest, ADamagedCheckpointIsNoFaultOfTheFlag) {
  namespace fs = std::filesystem;
  const std::string directory = testing::TempDir() + "/damaged_local_steps";
  fs::remove_all(directory);
  ASSERT_OK_AND_ASSIGN(const job::LocalSteps local, ParseLocalSteps(kGood));
  EXPECT_OK(CheckGoesOnWith(&local, directory));
  const std::string path = CheckpointStore(directory).PathOf(4);
  fs::create_directories(path);
  std::ofstream(path + "/MANIFEST") << "no manifest";
  EXPECT_OK(CheckGoesOnWith(&local, directory));
}

}  // namespace
}  // namespace parasol
