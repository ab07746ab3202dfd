// The programs of this folder, a few steps of each: on one replica, on two of a
// process, and on two of a process each, whose figures agree where mathematics
// says so; and with two workers and ps, whose processes are killed.

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/collective/socket_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr int kWorkers = 2;

using Lines = std::vector<std::string>;

class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/programs_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  // Starts a program; the `number`-th of this test.
  std::unique_ptr<Subprocess> Start(const Lines& command, int number,
                                    const std::string& cluster) {
    SubprocessOptions options;
    options.argv = command;
    if (command.front() != "ps/ps") {
      options.argv.front() =
          absl::StrCat("docs/examples/custom_loop/", command.front());
    }
    options.environment["TF_CONFIG"] = cluster;
    options.standard_output = OutputTo::File(PathOf(number, "out"));
    options.standard_error = OutputTo::File(PathOf(number, "log"));
    auto started = Subprocess::Start(options);
    EXPECT_OK(started);
    return started.ok() ? *std::move(started) : nullptr;
  }

  std::string PathOf(int number, const std::string& kind) const {
    return absl::StrCat(root_, "/", number, ".", kind);
  }
  Lines LinesOf(int number, const std::string& kind) const {
    std::ifstream file(PathOf(number, kind));
    Lines lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  void ExpectEnd(Subprocess& process, int number) {
    const auto end = process.Wait(kLimit);
    ASSERT_OK(end);
    EXPECT_EQ(end->code(), 0) << absl::StrJoin(LinesOf(number, "log"), "\n");
  }

  // Returns what a program prints in a process of its own.
  Lines OutputOf(const Lines& command) {
    const int number = runs_++;
    const auto process = Start(command, number, "");
    ExpectEnd(*process, number);
    return LinesOf(number, "out");
  }

  Lines OutputOfTwoReplicas(Lines command) {
    command.push_back("--devices=cpu:0,cpu:1");
    return OutputOf(command);
  }

  // Chooses ports for the tasks of a cluster: {"worker", 2}.
  void MakeCluster(const std::vector<std::pair<std::string, int>>& roles) {
    std::vector<std::unique_ptr<SocketEndpoint>> endpoints;
    Lines members;
    for (const auto& [role, count] : roles) {
      Lines addresses;
      for (int i = 0; i < count; ++i) {
        endpoints.push_back(*SocketEndpoint::Start("127.0.0.1", 0, {}));
        addresses.push_back(
            absl::StrCat("\"127.0.0.1:", endpoints.back()->port(), "\""));
      }
      members.push_back(absl::StrCat("\"", role, "\": [",
                                     absl::StrJoin(addresses, ", "), "]"));
    }
    cluster_ = absl::StrCat("{", absl::StrJoin(members, ", "), "}");
  }

  // Starts a task of the cluster, perhaps in the place of one that has ended.
  void StartTask(const std::string& role, int index, const Lines& command) {
    Task& task = tasks_[absl::StrCat(role, "/", index)];
    task.number = runs_++;
    task.process = Start(
        command, task.number,
        absl::StrCat("{\"cluster\": ", cluster_, ", \"task\": {\"type\": \"",
                     role, "\", \"index\": ", index, "}}"));
  }
  // Returns what the first worker has printed when all tasks have ended. The
  // other ones print nothing.
  Lines OutputOfCluster() {
    Lines output;
    for (const auto& [name, task] : tasks_) {
      SCOPED_TRACE(name);
      ExpectEnd(*task.process, task.number);
      Lines lines = LinesOf(task.number, "out");
      if (name == "worker/0") {
        output = std::move(lines);
      } else {
        EXPECT_THAT(lines, IsEmpty());
      }
    }
    tasks_.clear();
    return output;
  }

  Lines OutputOfTwoWorkers(const Lines& command) {
    MakeCluster({{"worker", kWorkers}});
    for (int i = 0; i < kWorkers; ++i) StartTask("worker", i, command);
    return OutputOfCluster();
  }

  void StartOnPs(Lines command, int workers, int ps) {
    command.push_back(absl::StrCat("--checkpoint_dir=", Checkpoints()));
    command.push_back("--checkpoint_every=10");
    MakeCluster({{"chief", 1}, {"ps", ps}, {"worker", workers}});
    StartTask("chief", 0, command);
    for (int i = 0; i < ps; ++i) StartTask("ps", i, {"ps/ps"});
    for (int i = 0; i < workers; ++i) StartTask("worker", i, command);
  }
  std::string Checkpoints() const { return root_ + "/checkpoints"; }
  int64_t NewestCheckpoint() const {
    const auto newest = CheckpointStore(Checkpoints()).NewestComplete();
    return newest.ok() ? newest->value_or(-1) : -1;
  }
  // Returns what the first worker has printed when the job is complete.
  Lines OutputOnPs(const Lines& command, int workers, int ps,
                   int64_t iterations) {
    StartOnPs(command, workers, ps);
    const Lines output = OutputOfCluster();
    EXPECT_EQ(NewestCheckpoint(), iterations);
    return output;
  }

  void AwaitCheckpoint(int64_t step) {
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    while (NewestCheckpoint() < step) {
      ASSERT_LT(Clock::Real().Now(), deadline) << NewestCheckpoint();
      Clock::Real().Pause(absl::Milliseconds(20));
    }
  }
  // Kills a task that has not ended, and starts it again.
  void KillAndStart(const std::string& role, int index, const Lines& command) {
    Subprocess& process = *tasks_[absl::StrCat(role, "/", index)].process;
    process.Kill();
    const auto end = process.Wait(kLimit);
    ASSERT_OK(end);
    ASSERT_EQ(end->signal, SIGKILL) << "it had ended before";
    StartTask(role, index, command);
  }

  // Returns the numbers of lines of text; of pictures there are none.
  static std::vector<float> NumbersOf(const Lines& lines) {
    std::vector<float> numbers;
    for (const std::string& line : lines) {
      for (size_t at = 0; at < line.size();) {
        if (!absl::ascii_isdigit(line[at])) {
          ++at;
          continue;
        }
        char* end = nullptr;
        numbers.push_back(std::strtof(&line[at], &end));
        at = end - line.data();
      }
    }
    return numbers;
  }

  // Returns the numbers behind `word` in lines that have it.
  static std::vector<float> NumbersBehind(const std::string& word,
                                          const Lines& lines) {
    std::vector<float> numbers;
    for (const std::string& line : lines) {
      const size_t at = line.find(word);
      if (at == std::string::npos) continue;
      numbers.push_back(std::strtof(&line[at + word.size()], nullptr));
      EXPECT_TRUE(std::isfinite(numbers.back())) << line;
    }
    return numbers;
  }
  // Workers take iterations side by side: the first one prints some of them,
  // each once.
  static void ExpectSomeOf(int iterations, const Lines& lines) {
    const std::vector<float> printed = NumbersBehind("iteration ", lines);
    ASSERT_THAT(printed, Not(IsEmpty()));
    const std::set<float> distinct(printed.begin(), printed.end());
    EXPECT_THAT(distinct, SizeIs(printed.size())) << absl::StrJoin(lines, "\n");
    EXPECT_GE(*distinct.begin(), 0);
    EXPECT_LE(*distinct.rbegin(), static_cast<float>(iterations));
  }
  // The last fifth of the numbers has a smaller mean than `share` of the first
  // fifth's.
  static void ExpectFalls(const std::vector<float>& numbers, float share) {
    const size_t fifth = numbers.size() / 5;
    ASSERT_GT(fifth, 0u);
    const float first =
        std::accumulate(numbers.begin(), numbers.begin() + fifth, 0.f);
    const float last =
        std::accumulate(numbers.end() - fifth, numbers.end(), 0.f);
    EXPECT_LT(last, share * first) << absl::StrJoin(numbers, " ");
  }

  // Returns the path of a text of words that follow each other at random.
  std::string MakeText() const {
    const Lines words = {"to ", "be ", "or ", "not ", "that is ", "question "};
    std::ofstream file(root_ + "/text");
    uint32_t drawn = 1;
    for (int i = 0; i < 4000; ++i) {
      drawn = drawn * 1664525 + 1013904223;
      file << words[(drawn >> 16) % words.size()];
    }
    return root_ + "/text";
  }

  // Two replicas have the same bits wherever they are, and of the same batch
  // the figures of one.
  void ExpectAgree(const Lines& one, const Lines& two, float tolerance) {
    const Lines alone = OutputOf(one);
    const Lines mirrored = OutputOfTwoReplicas(two);
    EXPECT_THAT(NumbersOf(alone), Not(IsEmpty()));
    EXPECT_THAT(NumbersOf(mirrored),
                Pointwise(FloatNear(tolerance), NumbersOf(alone)));
    EXPECT_THAT(OutputOfTwoWorkers(two), ElementsAreArray(mirrored));
  }

  // An interrupted program prints what an undisturbed one does.
  void ExpectGoesOn(const Lines& command) {
    const auto with = [&](const Lines& flags) {
      Lines all = command;
      all.insert(all.end(), flags.begin(), flags.end());
      return all;
    };
    const std::string directory =
        absl::StrCat("--checkpoint_dir=", root_, "/checkpoints");
    const Lines undisturbed = OutputOf(with({"--iterations=4"}));
    ASSERT_THAT(undisturbed, SizeIs(testing::Ge(4)));
    const Lines first = OutputOf(with({"--iterations=2", directory}));
    ASSERT_THAT(first, SizeIs(testing::Ge(2)));
    EXPECT_THAT(Lines(undisturbed.begin(), undisturbed.begin() + 2),
                ElementsAreArray(first.begin(), first.begin() + 2));
    const Lines second = OutputOf(with({"--iterations=4", directory}));
    EXPECT_THAT(Lines(undisturbed.begin() + 2, undisturbed.end()),
                ElementsAreArray(second));
  }

 private:
  struct Task {
    int number = 0;
    std::unique_ptr<Subprocess> process;
  };

  const std::string root_;
  int runs_ = 0;
  std::string cluster_;
  std::map<std::string, Task> tasks_;  // key: "worker/1"
};

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
      OutputOnPs({"wgan", "--batch=32", "--iterations=12", "--print_every=1"},
                 kWorkers, /*ps=*/2, 12);
  ExpectSomeOf(12, lines);
  EXPECT_THAT(NumbersBehind("distance ", lines), Not(IsEmpty()));
}

TEST_F(ProgramsTest, CharactersOnPsLearn) {
  const Lines lines = OutputOnPs(
      {"characters", absl::StrCat("--text=", MakeText()), "--model=transformer",
       "--steps=16", "--width=16", "--blocks=1", "--heads=2", "--batch=8",
       "--iterations=60", "--report=1", "--learning_rate=0.01"},
      kWorkers, /*ps=*/2, 60);
  ExpectSomeOf(60, lines);
  ExpectFalls(NumbersBehind(": loss ", lines), .9);
  EXPECT_THAT(NumbersBehind("rest of the text: ", lines), SizeIs(1));
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
