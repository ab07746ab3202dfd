// A program under parameter servers as real processes, which are killed.

#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "serving/testing/http_client.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::StartsWith;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr char kProgram[] = "loop/testing/two_optimizers";

class PsProcessesTest : public testing::Test {
 protected:
  PsProcessesTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/ps_processes_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ + "/hold") << "here";
  }

  // Chooses ports for the tasks of a cluster.
  void MakeCluster(int workers, int ps) {
    std::vector<int> ports = *FreeLoopbackPorts(1 + workers + ps);
    const auto addresses = [&](int count) {
      std::vector<std::string> found;
      for (int i = 0; i < count; ++i) {
        found.push_back(absl::StrCat("\"127.0.0.1:", ports.back(), "\""));
        ports.pop_back();
      }
      return absl::StrJoin(found, ", ");
    };
    cluster_ =
        absl::StrCat("{\"chief\": [", addresses(1), "], \"worker\": [",
                     addresses(workers), "], \"ps\": [", addresses(ps), "]}");
  }

  std::string LogOf(const std::string& task) const {
    return absl::StrCat(root_, "/", absl::StrReplaceAll(task, {{"/", "_"}}),
                        ".log");
  }
  std::string TextOf(const std::string& task) const {
    std::ifstream file(LogOf(task));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  // `task`: "worker/1"; "" for a process without a cluster.
  void Start(const std::string& task, std::vector<std::string> flags = {}) {
    SubprocessOptions options;
    if (absl::StartsWith(task, "ps/")) {
      options.argv = {"ps/ps"};
    } else {
      options.argv = {kProgram,
                      absl::StrCat("--checkpoint_dir=", root_, "/checkpoints"),
                      absl::StrCat("--hold_file=", root_, "/hold")};
      options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    }
    if (!task.empty()) {
      const std::vector<std::string> parts = absl::StrSplit(task, '/');
      options.environment["TF_CONFIG"] =
          absl::StrCat("{\"cluster\": ", cluster_, ", \"task\": {\"type\": \"",
                       parts[0], "\", \"index\": ", parts[1], "}}");
    }
    options.standard_output = OutputTo::File(LogOf(task));
    options.standard_error = OutputTo::File(LogOf(task));
    auto started = Subprocess::Start(options);
    ASSERT_OK(started);
    processes_[task] = *std::move(started);
  }

  void StartAll(int workers, int ps, const std::vector<std::string>& flags) {
    MakeCluster(workers, ps);
    Start("chief/0", flags);
    for (int i = 0; i < ps; ++i) Start(absl::StrCat("ps/", i));
    for (int i = 0; i < workers; ++i) Start(absl::StrCat("worker/", i), flags);
  }

  // Polls a fact of a process's log.
  void AwaitText(const std::string& task, const std::string& text) {
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    while (!absl::StrContains(TextOf(task), text)) {
      ASSERT_LT(Clock::Real().Now(), deadline) << text << TextOf(task);
      Clock::Real().Pause(absl::Milliseconds(20));
    }
  }

  static std::string BodyAt(int port, const std::string& path) {
    return HttpClient(port).Get(path).body;
  }
  // Returns the port that a process's log has behind `text`.
  int PortIn(const std::string& task, const std::string& text) const {
    const std::string log = TextOf(task);
    const size_t at = log.find(text);
    return at == std::string::npos ? 0 : atoi(&log[at + text.size()]);
  }

  int CodeOf(const std::string& task) {
    const auto end = processes_[task]->Wait(kLimit);
    EXPECT_OK(end) << task << TextOf(task);
    return end.ok() ? end->code() : -1;
  }
  void ExpectAllEndWell() {
    for (const auto& [task, process] : processes_) {
      EXPECT_EQ(CodeOf(task), 0) << task << ": " << TextOf(task);
    }
    processes_.clear();
  }
  void KillAndStart(const std::string& task,
                    const std::vector<std::string>& flags) {
    processes_[task]->Kill();
    CodeOf(task);
    Start(task, flags);
  }

  // Returns the line with the values at the end.
  std::string ValuesOf(const std::string& task) const {
    const std::string text = TextOf(task);
    const size_t at = text.rfind("values ");
    return at == std::string::npos ? ""
                                   : text.substr(at, text.find('\n', at) - at);
  }
  // Returns the number of times that each iteration was done by a task.
  std::multiset<int> IterationsOf(const std::string& task) const {
    std::multiset<int> iterations;
    for (absl::string_view line : absl::StrSplit(TextOf(task), '\n')) {
      int iteration = 0;
      if (absl::ConsumePrefix(&line, "iteration ") &&
          absl::SimpleAtoi(line, &iteration)) {
        iterations.insert(iteration);
      }
    }
    return iterations;
  }
  // Returns the step of the record's last line.
  int64_t LastRecordedStep() const {
    std::ifstream file(root_ + "/checkpoints/training.jsonl");
    int64_t step = 0;
    for (std::string line; std::getline(file, line);) {
      step =
          nlohmann::json::parse(line, nullptr, false).value("global_step", 0);
    }
    return step;
  }
  // Returns the value of "count", which each iteration has added 1 to.
  static double CountIn(const std::string& values) {
    const std::vector<std::string> parts = absl::StrSplit(values, ' ');
    double count = 0;
    EXPECT_TRUE(parts.size() > 4 && absl::SimpleAtod(parts[4], &count))
        << values;
    return count;
  }

  static std::vector<double> NumbersIn(const std::string& values) {
    std::vector<double> numbers;
    for (absl::string_view word : absl::StrSplit(values, ' ')) {
      double number = 0;
      if (absl::SimpleAtod(word, &number)) numbers.push_back(number);
    }
    return numbers;
  }
  // A flag whose exchanges are applied as they are.
  static std::string LocalSteps(int steps) {
    return absl::StrCat("--local_steps=steps: ", steps,
                        " outer { sgd { learning_rate: 1 } }");
  }

  const std::string root_;
  std::string cluster_;
  std::map<std::string, std::unique_ptr<Subprocess>> processes_;
};

TEST_F(PsProcessesTest, OneWorkerHasTheBitsOfOneProcess) {
  Start("");
  EXPECT_EQ(CodeOf(""), 0) << TextOf("");
  const std::string alone = ValuesOf("");
  ASSERT_THAT(alone, AllOf(StartsWith("values "), HasSubstr(" 10 seen 80")));
  processes_.clear();
  fs::remove_all(root_ + "/checkpoints");
  StartAll(1, 1, {});
  ExpectAllEndWell();
  EXPECT_EQ(ValuesOf("worker/0"), alone) << TextOf("worker/0");
}

TEST_F(PsProcessesTest, WorkersShareTheIterationsAndTheVariables) {
  StartAll(2, 2, {"--iterations=200"});
  ExpectAllEndWell();
  std::multiset<int> done = IterationsOf("worker/0");
  done.merge(IterationsOf("worker/1"));
  ASSERT_EQ(done.size(), 200u);
  EXPECT_EQ(*done.begin(), 0);
  EXPECT_EQ(*done.rbegin(), 199);
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 200u);
  const std::string values = ValuesOf("worker/0");
  EXPECT_EQ(CountIn(values), 200) << values;
  EXPECT_EQ(ValuesOf("worker/1").substr(0, values.find(" seen")),
            values.substr(0, values.find(" seen")));
}

// Each line has the losses and the recorded values of the same iterations, and
// the last one those before the end.
TEST_F(PsProcessesTest, RecordedValuesOfAllWorkersAreInTheRecord) {
  StartAll(2, 1, {"--iterations=300"});
  ExpectAllEndWell();
  std::ifstream file(root_ + "/checkpoints/training.jsonl");
  int64_t step = 0;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    step = json.value("global_step", 0);
    ASSERT_TRUE(json["loss"].is_number()) << line;
    ASSERT_TRUE(json["twice_loss"].is_number()) << line;
    EXPECT_NEAR(json["twice_loss"], 2 * json["loss"].get<double>(), 1e-6);
  }
  EXPECT_EQ(step, 300);
}

TEST_F(PsProcessesTest, TheChiefHasAPageAndAllHaveMetrics) {
  const std::vector<std::string> flags = {"--iterations=20", "--hold_at=10",
                                          "--metrics_address=127.0.0.1:0"};
  StartAll(1, 1, flags);
  AwaitText("worker/0", "iteration 10\n");
  const int page = PortIn("chief/0", ", page and /metrics on port ");
  const absl::Time deadline = Clock::Real().Now() + kLimit;
  const auto shown = [&] { return BodyAt(page, "/status.json"); };
  while (!absl::StrContains(shown(), "\"global_step\":10")) {
    ASSERT_LT(Clock::Real().Now(), deadline) << shown();
    Clock::Real().Pause(absl::Milliseconds(20));
  }
  EXPECT_THAT(BodyAt(page, "/"), HasSubstr("<html"));
  const int own = PortIn("worker/0", ", /metrics on port ");
  EXPECT_THAT(shown(), HasSubstr(absl::StrCat("127.0.0.1:", own)));
  EXPECT_THAT(BodyAt(page, "/metrics"),
              HasSubstr("parasol_chief_global_step 10"));
  EXPECT_THAT(BodyAt(own, "/metrics"),
              HasSubstr("parasol_worker_recorded_value{name=\"twice_loss\"}"));
  fs::remove(root_ + "/hold");
  ExpectAllEndWell();
}

TEST_F(PsProcessesTest, WithoutATrainingTheJobEndsWithTheWorkers) {
  StartAll(2, 1, {"--iterations=30", "--without_training"});
  ExpectAllEndWell();
  for (const std::string worker : {"worker/0", "worker/1"}) {
    EXPECT_EQ(IterationsOf(worker).size(), 30u) << TextOf(worker);
  }
}

TEST_F(PsProcessesTest, CheckpointsGoFromOneStrategyToTheOther) {
  Start("", {"--iterations=4"});
  EXPECT_EQ(CodeOf(""), 0) << TextOf("");
  processes_.clear();
  StartAll(1, 2, {"--iterations=7"});
  ExpectAllEndWell();
  fs::remove(LogOf(""));
  Start("");
  EXPECT_EQ(CodeOf(""), 0) << TextOf("");
  const std::string values = ValuesOf("");
  EXPECT_EQ(CountIn(values), 10) << TextOf("");
  EXPECT_THAT(values, HasSubstr("seen 80"));
  processes_.clear();
  // As if nothing had happened.
  fs::remove_all(root_ + "/checkpoints");
  fs::remove(LogOf(""));
  Start("");
  EXPECT_EQ(CodeOf(""), 0);
  EXPECT_EQ(ValuesOf(""), values);
}

TEST_F(PsProcessesTest, AKilledWorkersIterationIsGrantedAgain) {
  const std::vector<std::string> flags = {"--iterations=40"};
  MakeCluster(2, 1);
  Start("chief/0", flags);
  Start("ps/0");
  Start("worker/0", {"--iterations=40", "--hold_at=0"});
  AwaitText("worker/0", "iteration 0\n");
  Start("worker/1", flags);
  AwaitText("worker/1", "iteration 12\n");
  KillAndStart("worker/0", flags);
  ExpectAllEndWell();
  std::multiset<int> done = IterationsOf("worker/0");
  done.merge(IterationsOf("worker/1"));
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 40u);
  // Its updates had been pushed when it was killed.
  EXPECT_EQ(done.count(0), 2u);
  EXPECT_EQ(CountIn(ValuesOf("worker/1")), 41);
}

TEST_F(PsProcessesTest, AKilledPsAndAKilledChiefComeBack) {
  const std::vector<std::string> flags = {
      "--iterations=400", "--checkpoint_every=10", "--hold_at=60"};
  StartAll(1, 2, flags);
  AwaitText("worker/0", "iteration 60\n");
  KillAndStart("ps/1", {});
  KillAndStart("chief/0", flags);
  fs::remove(root_ + "/hold");
  ExpectAllEndWell();
  const std::multiset<int> done = IterationsOf("worker/0");
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 400u);
}

// An exchange of one iteration that is applied as it is, is the iteration.
TEST_F(PsProcessesTest, OneLocalStepHasTheValuesOfOneProcess) {
  Start("");
  EXPECT_EQ(CodeOf(""), 0) << TextOf("");
  const std::vector<double> alone = NumbersIn(ValuesOf(""));
  ASSERT_EQ(alone.size(), 5u);
  processes_.clear();
  fs::remove_all(root_ + "/checkpoints");
  StartAll(1, 1, {LocalSteps(1)});
  ExpectAllEndWell();
  EXPECT_THAT(NumbersIn(ValuesOf("worker/0")),
              Pointwise(DoubleNear(1e-5), alone))
      << TextOf("worker/0");
}

TEST_F(PsProcessesTest, WorkersOfLocalStepsShareTheIterations) {
  // The last exchange has five.
  StartAll(2, 2, {"--iterations=205", LocalSteps(10)});
  ExpectAllEndWell();
  std::multiset<int> done = IterationsOf("worker/0");
  done.merge(IterationsOf("worker/1"));
  ASSERT_EQ(done.size(), 205u);
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 205u);
  EXPECT_EQ(*done.rbegin(), 204);
  const std::string values = ValuesOf("worker/0");
  EXPECT_EQ(CountIn(values), 205) << values;
  EXPECT_EQ(ValuesOf("worker/1").substr(0, values.find(" seen")),
            values.substr(0, values.find(" seen")));
  EXPECT_EQ(LastRecordedStep(), 21);
}

// What it had done since its last exchange is done again, by the other one, and
// once.
TEST_F(PsProcessesTest, AWorkerIsKilledBetweenExchanges) {
  const std::vector<std::string> flags = {"--iterations=200", LocalSteps(5)};
  MakeCluster(2, 1);
  Start("chief/0", flags);
  Start("ps/0");
  Start("worker/0", {"--iterations=200", LocalSteps(5), "--hold_at=3"});
  AwaitText("worker/0", "iteration 3\n");
  Start("worker/1", flags);
  AwaitText("worker/1", "iteration 112\n");
  KillAndStart("worker/0", flags);
  ExpectAllEndWell();
  std::multiset<int> done = IterationsOf("worker/0");
  done.merge(IterationsOf("worker/1"));
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 200u);
  EXPECT_EQ(done.count(0), 2u);
  EXPECT_EQ(CountIn(ValuesOf("worker/1")), 200);
}

TEST_F(PsProcessesTest, AKilledPsAndAKilledChiefComeBackToLocalSteps) {
  const std::vector<std::string> flags = {"--iterations=400",
                                          "--checkpoint_every=2",
                                          "--hold_at=63", LocalSteps(5)};
  StartAll(1, 2, flags);
  AwaitText("worker/0", "iteration 63\n");
  KillAndStart("ps/1", {});
  KillAndStart("chief/0", flags);
  fs::remove(root_ + "/hold");
  ExpectAllEndWell();
  const std::multiset<int> done = IterationsOf("worker/0");
  EXPECT_EQ((std::set<int>(done.begin(), done.end()).size()), 400u);
}

TEST_F(PsProcessesTest, LocalStepsGoOnFromACheckpointOfAsMany) {
  StartAll(1, 1, {"--iterations=20", LocalSteps(5)});
  ExpectAllEndWell();
  Start("chief/0", {"--iterations=40", LocalSteps(10)});
  EXPECT_EQ(CodeOf("chief/0"), 2);
  EXPECT_THAT(TextOf("chief/0"),
              HasSubstr("counts exchanges of 5 iterations, and this program "
                        "exchanges of 10 iterations"));
  Start("chief/0", {"--iterations=40"});
  EXPECT_EQ(CodeOf("chief/0"), 2);
  EXPECT_THAT(TextOf("chief/0"), HasSubstr("and this program iterations; go "));
  processes_.clear();
  StartAll(1, 2, {"--iterations=40", LocalSteps(5)});
  ExpectAllEndWell();
  const std::string values = ValuesOf("worker/0");
  EXPECT_EQ(CountIn(values), 40) << values;
  EXPECT_THAT(values, HasSubstr("seen 320"));
  // Each once, in both runs' log.
  EXPECT_EQ(IterationsOf("worker/0").size(), 40u);
  EXPECT_EQ(LastRecordedStep(), 8);
}

TEST_F(PsProcessesTest, LocalStepsPushAFractionOfTheBytes) {
  const auto pushed = [&](const std::string& local_steps) {
    StartAll(1, 1,
             {"--iterations=60", "--hold_at=40", local_steps,
              "--metrics_address=127.0.0.1:0"});
    AwaitText("worker/0", "iteration 40\n");
    const std::string page =
        BodyAt(PortIn("worker/0", ", /metrics on port "), "/metrics");
    fs::remove(root_ + "/hold");
    ExpectAllEndWell();
    fs::remove_all(root_ + "/checkpoints");
    std::ofstream(root_ + "/hold") << "here";
    fs::remove(LogOf("worker/0"));
    const std::string name = "\nparasol_worker_push_bytes_total ";
    const size_t at = page.find(name);
    EXPECT_NE(at, std::string::npos) << page;
    return at == std::string::npos ? 0 : atof(&page[at + name.size()]);
  };
  // Its iteration 40 has pushed its updates of four elements, too.
  const double of_each = pushed("--local_steps=") - 4 * sizeof(float);
  EXPECT_GT(of_each, 0);
  EXPECT_EQ(10 * pushed(LocalSteps(10)), of_each);
}

TEST_F(PsProcessesTest, WrongLocalStepsAreRefused) {
  Start("", {LocalSteps(5)});
  EXPECT_EQ(CodeOf(""), 2);
  EXPECT_THAT(TextOf(""),
              HasSubstr("--local_steps: there are no parameter servers"));
  MakeCluster(1, 1);
  Start("chief/0", {"--local_steps=steps: 5 fragments: 2 outer { sgd {} }"});
  EXPECT_EQ(CodeOf("chief/0"), 2);
  EXPECT_THAT(TextOf("chief/0"),
              HasSubstr("--local_steps: fragments: a program exchanges all"));
  Start("chief/0", {LocalSteps(5)});
  Start("ps/0");
  Start("worker/0", {LocalSteps(6)});
  EXPECT_EQ(CodeOf("worker/0"), 2);
  EXPECT_THAT(TextOf("worker/0"),
              AllOf(HasSubstr("another program than the chief"),
                    HasSubstr("local_steps.steps: 5 -> 6")));
  // The second optimizer is compared, too.
  Start("worker/0", {LocalSteps(5), "--offset_rate=.5"});
  EXPECT_EQ(CodeOf("worker/0"), 2);
  EXPECT_THAT(TextOf("worker/0"), HasSubstr("learning_rate: 0.5"));
  Start("worker/0", {LocalSteps(5), "--without_training"});
  EXPECT_EQ(CodeOf("worker/0"), 2);
  EXPECT_THAT(TextOf("worker/0"), HasSubstr("before there is a Training"));
}

TEST_F(PsProcessesTest, ErrorsEndTheJobWithALine) {
  StartAll(2, 1, {"--fails", "--iterations=1000000000"});
  for (const std::string task : {"chief/0", "worker/0", "worker/1"}) {
    EXPECT_NE(CodeOf(task), 0) << task;
    EXPECT_THAT(TextOf(task), HasSubstr("the step does not like iteration 3"));
  }
}

TEST_F(PsProcessesTest, AnotherProgramOnAWorkerIsRefused) {
  MakeCluster(1, 1);
  Start("chief/0");
  Start("ps/0");
  Start("worker/0", {"--offset_rate=.5"});
  EXPECT_EQ(CodeOf("worker/0"), 2) << TextOf("worker/0");
  EXPECT_THAT(TextOf("worker/0"),
              AllOf(HasSubstr("another program than the chief"),
                    HasSubstr("learning_rate: 0.25 -> 0.5")));
}

TEST_F(PsProcessesTest, AClusterThatLacksSomethingIsRefused) {
  cluster_ = "{\"worker\": [\"127.0.0.1:1\"], \"ps\": [\"127.0.0.1:2\"]}";
  Start("worker/0");
  EXPECT_EQ(CodeOf("worker/0"), 2);
  EXPECT_THAT(TextOf("worker/0"), HasSubstr("cluster.chief: is not there"));
  MakeCluster(1, 1);
  Start("chief/0", {"--checkpoint_dir="});
  EXPECT_EQ(CodeOf("chief/0"), 2);
  EXPECT_THAT(TextOf("chief/0"), HasSubstr("--checkpoint_dir: is not set"));
  Start("worker/0", {"--status_address=127.0.0.1:0"});
  EXPECT_EQ(CodeOf("worker/0"), 2);
  EXPECT_THAT(TextOf("worker/0"),
              HasSubstr("--status_address=127.0.0.1:0: the chief of a cluster "
                        "with ps answers at its own address"));
}

}  // namespace
}  // namespace parasol
