// The programs of this folder, a few steps of each: on one replica, on two of a
// process, and on two of a process each, whose figures agree where mathematics
// says so; with two workers and ps, whose processes are killed; and what they
// show to those who look on.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "docs/examples/custom_loop/programs_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

// Checks losses of consecutive steps of the guide with those that TensorFlow
// prints: "Custom training loops" of docs/custom_loop.md's guide.
void ExpectGuidesLosses(const std::vector<float>& losses) {
  double logit = -.21567887;
  for (size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(losses[step], std::log1p(std::exp(-logit)), 1e-6) << step;
    logit += .02 / (1 + std::exp(logit));
  }
}

// Those that the guide shows.
TEST_F(ProgramsTest, GuidesLossesAreTensorFlows) {
  const std::vector<float> losses = NumbersOf(OutputOf({"guide"}));
  ASSERT_THAT(losses, SizeIs(30));
  EXPECT_FLOAT_EQ(losses[0], .80679005);
  EXPECT_NEAR(losses[19], .7003829, 2e-7);
  EXPECT_NEAR(losses[20], .69532317, 2e-7);
  EXPECT_NEAR(losses[29], .6519975, 2e-7);
  ExpectGuidesLosses(losses);
}

// Two replicas take a pass of 10 steps, and 10 steps of another one.
TEST_F(ProgramsTest, GuidesLossesAreThoseOfTwoReplicas) {
  ExpectAgree({"guide", "--batch_per_replica=10"}, {"guide"}, 1e-6);
  const std::vector<float> losses = NumbersOf(OutputOfTwoReplicas({"guide"}));
  ASSERT_THAT(losses, SizeIs(20));
  ExpectGuidesLosses(losses);
}

TEST_F(ProgramsTest, Gan) {
  const Lines command = {"gan",
                         "--batch=16",
                         "--iterations=4",
                         "--digits=200",
                         "--discriminator_updates=2",
                         "--print_every=1"};
  ExpectAgree(command, command, 1e-3);
}

TEST_F(ProgramsTest, GanGoesOn) {
  ExpectGoesOn({"gan", "--batch=16", "--digits=200", "--print_every=1"});
}

TEST_F(ProgramsTest, Contrastive) {
  const Lines command = {"contrastive", "--batch=32", "--iterations=5",
                         "--print_every=1"};
  ExpectAgree(command, command, 2e-3);
}

// A better figure than chance, of a program that learns.
TEST_F(ProgramsTest, ContrastiveLearns) {
  const Lines lines = OutputOf({"contrastive", "--iterations=200"});
  ASSERT_THAT(lines, Not(IsEmpty()));
  EXPECT_GT(NumbersOf({lines.back()}).back(), .8) << lines.back();
}

// What replicas draw at random is their own, so that two have other figures
// than one.
TEST_F(ProgramsTest, Reinforce) {
  const Lines command = {"reinforce", "--episodes=8", "--iterations=4"};
  const Lines mirrored = OutputOfTwoReplicas(command);
  EXPECT_THAT(mirrored, SizeIs(4));
  EXPECT_THAT(OutputOfTwoWorkers(command), ElementsAreArray(mirrored));
  EXPECT_THAT(NumbersOf(mirrored), Each(Lt(200.f)));
}

TEST_F(ProgramsTest, ReinforceGoesOn) {
  ExpectGoesOn({"reinforce", "--episodes=8"});
}

TEST_F(ProgramsTest, Wgan) {
  const Lines command = {"wgan", "--batch=32", "--iterations=4",
                         "--print_every=1"};
  const Lines mirrored = OutputOfTwoReplicas(command);
  EXPECT_THAT(mirrored, SizeIs(4));
  EXPECT_THAT(OutputOfTwoWorkers(command), ElementsAreArray(mirrored));
}

TEST_F(ProgramsTest, WganGoesOn) {
  ExpectGoesOn({"wgan", "--batch=32", "--print_every=1"});
}

TEST_F(ProgramsTest, Characters) {
  const Lines command = {"characters",   absl::StrCat("--text=", MakeText()),
                         "--model=lstm", "--steps=16",
                         "--width=16",   "--units=32",
                         "--batch=8",    "--iterations=20",
                         "--report=1",   "--learning_rate=0.01"};
  const auto losses = [](const Lines& lines) {
    return NumbersBehind(": loss ", lines);
  };
  const std::vector<float> mirrored = losses(OutputOfTwoReplicas(command));
  ASSERT_THAT(mirrored, SizeIs(20));
  ExpectFalls(mirrored, .95);
  EXPECT_THAT(losses(OutputOf(command)), Pointwise(FloatNear(1e-3), mirrored));
  EXPECT_THAT(losses(OutputOfTwoWorkers(command)), ElementsAreArray(mirrored));
}

// With one worker all updates come in order.
TEST_F(ProgramsTest, GuideOnPsHasTheLossesOfOneProcess) {
  const Lines alone = OutputOf({"guide"});
  EXPECT_THAT(OutputOnPs({"guide"}, /*workers=*/1, /*ps=*/1, 30),
              ElementsAreArray(alone));
}

// Each of two workers runs the whole loop, on one kernel and one bias: a worker
// sees its own updates, and others, so its losses fall, and faster than alone.
TEST_F(ProgramsTest, GuideOnPsOfTwoWorkers) {
  const std::vector<float> losses =
      NumbersOf(OutputOnPs({"guide"}, kWorkers, /*ps=*/2, 60));
  const std::vector<float> alone = NumbersOf(OutputOf({"guide"}));
  ASSERT_THAT(losses, SizeIs(30));
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_LE(losses[i], alone[i] + 1e-6) << i;
    EXPECT_TRUE(i == 0 || losses[i] < losses[i - 1]) << i;
  }
}

TEST_F(ProgramsTest, GanOnPs) {
  const Lines lines =
      OutputOnPs({"gan", "--batch=16", "--iterations=12", "--digits=200",
                  "--discriminator_updates=2", "--print_every=1"},
                 kWorkers, /*ps=*/2, 12);
  ExpectSomeOf(12, lines);
  EXPECT_THAT(NumbersBehind("generator ", lines),
              SizeIs(NumbersBehind("discriminator ", lines).size()));
}

TEST_F(ProgramsTest, ReinforceOnPsLearns) {
  const Lines lines =
      OutputOnPs({"reinforce", "--episodes=16", "--iterations=60"}, kWorkers,
                 /*ps=*/1, 60);
  ExpectSomeOf(60, lines);
  std::vector<float> missing;
  for (const float steps : NumbersBehind(": ", lines)) {
    missing.push_back(200 - steps);
  }
  ExpectFalls(missing, .9);
}

TEST_F(ProgramsTest, WganOnPs) {
  const Lines lines =
      OutputOnPs({"wgan", "--batch=32", "--iterations=40", "--print_every=1"},
                 kWorkers, /*ps=*/2, 40);
  ExpectSomeOf(40, lines);
  EXPECT_THAT(NumbersBehind("distance ", lines), Not(IsEmpty()));
}

// The other worker may have trained the model before the first one comes: it
// has enough iterations that the first has some, whose losses need not fall.
TEST_F(ProgramsTest, CharactersOnPsLearn) {
  constexpr float kUntrained = 2.56;  // log(13): the text has 13 characters
  const Lines lines = OutputOnPs(
      {"characters", absl::StrCat("--text=", MakeText()), "--model=transformer",
       "--steps=16", "--width=16", "--blocks=1", "--heads=2", "--batch=8",
       "--iterations=400", "--report=1", "--learning_rate=0.01"},
      kWorkers, /*ps=*/2, 400);
  ExpectSomeOf(400, lines);
  const std::vector<float> losses = NumbersBehind(": loss ", lines);
  ASSERT_THAT(losses, Not(IsEmpty()));
  EXPECT_LT(losses.back(), kUntrained / 2);
  EXPECT_THAT(NumbersBehind("rest of the text: ", lines), SizeIs(1));
}

// A program that goes on until it is killed, and the tool.
class ShownProgramsTest : public ProgramsTest {
 protected:
  ShownProgramsTest() {
    address_ = absl::StrCat("127.0.0.1:", FreeLoopbackPorts(1)->front());
    command_ = {"gan", "--iterations=1000000", "--digits=600",
                absl::StrCat("--checkpoint_dir=", Checkpoints()),
                absl::StrCat("--status_address=", address_)};
  }

  CompletedProcess Ask(const std::string& what, const Lines& flags = {}) const {
    SubprocessOptions options;
    options.argv = {"tool/parasol", what, address_};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    const auto run = RunSubprocess(options, kLimit);
    EXPECT_OK(run.status());
    return run.ok() ? *run : CompletedProcess();
  }
  // The status has the parts of each worker's steps; stacks and a trace have
  // all of them.
  void ExpectAreShown(const Lines& workers) const {
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    for (Lines paced; paced.size() < workers.size();) {
      ASSERT_LT(Clock::Real().Now(), deadline) << Ask("status").standard_output;
      Clock::Real().Pause(absl::Milliseconds(100));
      paced.clear();
      for (const absl::string_view line :
           absl::StrSplit(Ask("status").standard_output, '\n')) {
        if (absl::StrContains(line, " steps/s: input "))
          paced.emplace_back(line);
      }
    }
    const CompletedProcess stacks = Ask("why", {"--stacks=all"});
    EXPECT_EQ(stacks.end.code(), 0) << stacks.standard_error;
    EXPECT_THAT(stacks.standard_output, Not(HasSubstr("nothing is known")));
    const CompletedProcess trace =
        Ask("trace",
            {"--steps=3", absl::StrCat("--output=", Checkpoints(), ".trace")});
    EXPECT_EQ(trace.end.code(), 0) << trace.standard_error;
    for (const std::string& worker : workers) {
      EXPECT_THAT(stacks.standard_output, HasSubstr(worker));
      EXPECT_THAT(trace.standard_output, HasSubstr(worker));
    }
  }

  std::string address_;
  Lines command_;
};

TEST_F(ShownProgramsTest, AloneWithTwoReplicas) {
  command_.push_back("--devices=cpu:0,cpu:1");
  const auto program = Start(command_, 0, "");
  ExpectAreShown({"worker/0"});
  program->Kill();
  ASSERT_OK(program->Wait(kLimit).status());
}

TEST_F(ShownProgramsTest, OfTwoProcesses) {
  MakeCluster({{"worker", kWorkers}});
  for (int i = 0; i < kWorkers; ++i) StartTask("worker", i, command_);
  ExpectAreShown({"worker/0", "worker/1"});
  KillTasks();
}

TEST_F(ShownProgramsTest, OnPs) {
  StartOnPs({"gan", "--iterations=1000000", "--digits=600"}, kWorkers,
            /*ps=*/1);
  address_ = ChiefAddress();
  ExpectAreShown({"worker/0", "worker/1"});
  KillTasks();
}

// Killed tasks come back, and what the job has learned stays.
TEST_F(ProgramsTest, ContrastiveOnPsLearnsThoughTasksAreKilled) {
  const Lines command = {"contrastive", "--iterations=400", "--print_every=1"};
  StartOnPs(command, kWorkers, /*ps=*/2);
  AwaitCheckpoint(20);
  KillAndStart("ps", 1, {"ps/ps"});
  Lines worker = command;
  worker.push_back(absl::StrCat("--checkpoint_dir=", Checkpoints()));
  worker.push_back("--checkpoint_every=10");
  KillAndStart("worker", 1, worker);
  const Lines lines = OutputOfCluster();
  EXPECT_EQ(NewestCheckpoint(), 400);
  ExpectSomeOf(400, lines);
  ExpectFalls(NumbersBehind(": loss ", lines), .6);
  const std::vector<float> accuracy = NumbersBehind("nearest image: ", lines);
  ASSERT_THAT(accuracy, SizeIs(1));
  EXPECT_GT(accuracy[0], .8);
}

}  // namespace
}  // namespace parasol
