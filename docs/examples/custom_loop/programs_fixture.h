#ifndef PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_PROGRAMS_FIXTURE_H_
#define PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_PROGRAMS_FIXTURE_H_

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
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"

namespace parasol {

inline constexpr absl::Duration kLimit = absl::Minutes(2);
inline constexpr int kWorkers = 2;

using Lines = std::vector<std::string>;

// Runs of this folder's programs, as processes on this machine.
class ProgramsTest : public testing::Test {
 protected:
  ProgramsTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/programs_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
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
    int tasks = 0;
    for (const auto& [role, count] : roles) tasks += count;
    std::vector<int> ports = *FreeLoopbackPorts(tasks);
    Lines members;
    for (const auto& [role, count] : roles) {
      Lines addresses;
      for (int i = 0; i < count; ++i) {
        addresses.push_back(absl::StrCat("\"127.0.0.1:", ports.back(), "\""));
        ports.pop_back();
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
        EXPECT_THAT(lines, testing::IsEmpty());
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
    StartTask("worker", 0, command);
    AwaitRegistered("worker/0");
    for (int i = 1; i < workers; ++i) StartTask("worker", i, command);
  }
  // Workers take iterations side by side: whoever starts first has some.
  void AwaitRegistered(const std::string& task) {
    const std::string line = absl::StrCat(task, " registered");
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    for (;;) {
      for (const std::string& each : LinesOf(tasks_["chief/0"].number, "log")) {
        if (absl::StrContains(each, line)) return;
      }
      ASSERT_LT(Clock::Real().Now(), deadline) << "there is no " << line;
      Clock::Real().Pause(absl::Milliseconds(20));
    }
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
  std::string ChiefAddress() const {
    const std::string before = "\"chief\": [\"";
    const size_t at = cluster_.find(before) + before.size();
    return cluster_.substr(at, cluster_.find('"', at) - at);
  }
  void KillTasks() {
    for (const auto& [name, task] : tasks_) task.process->Kill();
    for (const auto& [name, task] : tasks_) {
      EXPECT_OK(task.process->Wait(kLimit).status());
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
  // The first worker prints some of the iterations, each once.
  static void ExpectSomeOf(int iterations, const Lines& lines) {
    const std::vector<float> printed = NumbersBehind("iteration ", lines);
    ASSERT_THAT(printed, testing::Not(testing::IsEmpty()));
    const std::set<float> distinct(printed.begin(), printed.end());
    EXPECT_THAT(distinct, testing::SizeIs(printed.size()))
        << absl::StrJoin(lines, "\n");
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
    EXPECT_THAT(NumbersOf(alone), testing::Not(testing::IsEmpty()));
    EXPECT_THAT(
        NumbersOf(mirrored),
        testing::Pointwise(testing::FloatNear(tolerance), NumbersOf(alone)));
    EXPECT_THAT(OutputOfTwoWorkers(two), testing::ElementsAreArray(mirrored));
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
    ASSERT_THAT(undisturbed, testing::SizeIs(testing::Ge(4)));
    const Lines first = OutputOf(with({"--iterations=2", directory}));
    ASSERT_THAT(first, testing::SizeIs(testing::Ge(2)));
    EXPECT_THAT(Lines(undisturbed.begin(), undisturbed.begin() + 2),
                testing::ElementsAreArray(first.begin(), first.begin() + 2));
    const Lines second = OutputOf(with({"--iterations=4", directory}));
    EXPECT_THAT(Lines(undisturbed.begin() + 2, undisturbed.end()),
                testing::ElementsAreArray(second));
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

}  // namespace parasol

#endif  // PARASOL_DOCS_EXAMPLES_CUSTOM_LOOP_PROGRAMS_FIXTURE_H_
