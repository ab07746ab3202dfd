// Programs with a mistake of a user, as processes under every strategy: all
// end, and soon, each with one line that says what is wrong and where.

#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/collective/socket_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::TempDir;

// Less than the time that a chief waits for a task which does not leave.
constexpr absl::Duration kLimit = absl::Seconds(25);

using Lines = std::vector<std::string>;

// The processes of a strategy: how many of each role; none: one without a
// cluster.
struct Way {
  std::string name;
  std::vector<std::pair<std::string, int>> roles = {};
  Lines flags = {};
};

Way Default() { return {.name = "default"}; }
Way Mirrored() {
  return {.name = "mirrored",
          .flags = {"--devices=cpu:0,cpu:1", "--faulty_replica=1"}};
}
Way TwoWorkers() {
  return {.name = "two_workers",
          .roles = {{"worker", 2}},
          .flags = {"--faulty_replica=1"}};
}
Way OnPs() {
  return {
      .name = "on_ps",
      .roles = {{"chief", 1}, {"ps", 1}, {"worker", 2}},
      .flags = {
          "--faulty_replica=1",
          absl::StrCat(
              "--checkpoint_dir=", TempDir(), "/faults_ps_",
              testing::UnitTest::GetInstance()->current_test_info()->name())}};
}

// How a process has ended.
struct Ended {
  int code = -1;
  Lines lines = {};  // what it has said on stderr, without its log
};

std::string ClusterOf(const Way& strategy) {
  std::vector<std::unique_ptr<SocketEndpoint>> endpoints;
  Lines members;
  for (const auto& [role, count] : strategy.roles) {
    Lines addresses;
    for (int i = 0; i < count; ++i) {
      endpoints.push_back(*SocketEndpoint::Start("127.0.0.1", 0, {}));
      addresses.push_back(
          absl::StrCat("\"127.0.0.1:", endpoints.back()->port(), "\""));
    }
    members.push_back(
        absl::StrCat("\"", role, "\": [", absl::StrJoin(addresses, ", "), "]"));
  }
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}");
}

Ended EndOf(Subprocess& process, const std::string& task) {
  const auto end = process.Wait(kLimit);
  EXPECT_OK(end) << task;
  if (!end.ok()) process.Kill();
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(process.error_pipe(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, n);
  Ended ended = {.code = end.ok() ? end->code() : -1};
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (testing::Value(std::string(line), MatchesRegex("[IW][0-9]{4} .*"))) {
      continue;
    }
    ended.lines.emplace_back(line);
  }
  return ended;
}

std::unique_ptr<Subprocess> Start(Lines argv, const std::string& tf_config) {
  SubprocessOptions options;
  options.argv = std::move(argv);
  options.environment["TF_CONFIG"] = tf_config;
  options.standard_error = OutputTo::Pipe();
  auto started = Subprocess::Start(options);
  EXPECT_OK(started);
  return *std::move(started);
}

// Returns the ends of all processes of the program; key: "worker/1", "" for one
// without a cluster.
std::map<std::string, Ended> RunWith(const std::string& fault,
                                     const Way& strategy, Lines flags = {}) {
  Lines program = {"loop/testing/faulty", absl::StrCat("--fault=", fault)};
  program.insert(program.end(), strategy.flags.begin(), strategy.flags.end());
  program.insert(program.end(), flags.begin(), flags.end());
  std::map<std::string, std::unique_ptr<Subprocess>> processes;
  if (strategy.roles.empty()) processes[""] = Start(program, "");
  const std::string cluster = ClusterOf(strategy);
  for (const auto& [role, count] : strategy.roles) {
    for (int i = 0; i < count; ++i) {
      processes[absl::StrCat(role, "/", i)] = Start(
          role == "ps" ? Lines{"ps/ps"} : program,
          absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"",
                       role, "\", \"index\": ", i, "}}"));
    }
  }
  std::map<std::string, Ended> ends;
  for (const auto& [task, process] : processes) {
    ends[task] = EndOf(*process, task);
  }
  return ends;
}

// All processes fail with one line that has `text`.
void ExpectAllSay(const std::string& text,
                  const std::map<std::string, Ended>& ends) {
  for (const auto& [task, ended] : ends) {
    SCOPED_TRACE(task);
    EXPECT_THAT(ended.code, AnyOf(1, 2));
    EXPECT_THAT(ended.lines, ElementsAre(HasSubstr(text)));
  }
}

TEST(FaultsTest, AnException) {
  ExpectAllSay("faulty: exception: out of luck",
               RunWith("exception", Default()));
  ExpectAllSay("faulty: replica 1 (cpu:1): exception: out of luck",
               RunWith("exception", Mirrored()));
  auto ends = RunWith("exception", TwoWorkers());
  ExpectAllSay("exception: out of luck", ends);
  EXPECT_THAT(ends["worker/0"].lines, ElementsAre(HasSubstr("worker/1: exc")));
  ends = RunWith("exception", OnPs());
  ExpectAllSay("exception: out of luck", ends);
  for (const std::string task : {"chief/0", "ps/0", "worker/0"}) {
    EXPECT_THAT(ends[task].lines, ElementsAre(HasSubstr("worker/1: exc")));
  }
}

TEST(FaultsTest, ALossThatIsNoNumber) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers(), OnPs()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("the gradient of network/dense_0/kernel has nan at element 0",
                 RunWith("nan", strategy));
  }
}

TEST(FaultsTest, AReplicasValueOfAnotherShape) {
  for (const Way& strategy : {Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("replicas have values of the shapes [] and [2]",
                 RunWith("shape", strategy));
  }
}

TEST(FaultsTest, AScopeOfAnotherStrategy) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay("a scope of another strategy is open",
                 RunWith("scope", strategy));
  }
}

TEST(FaultsTest, AVariableOfNoScope) {
  for (const Way& strategy : {Default(), Mirrored(), TwoWorkers()}) {
    SCOPED_TRACE(strategy.name);
    ExpectAllSay(
        "optimizer sgd: variable outside was made under another strategy",
        RunWith("outside", strategy));
    ExpectAllSay("variable outside is used in a step of another strategy",
                 RunWith("outside_step", strategy));
  }
}

TEST(FaultsTest, AnotherModelOnAWorker) {
  ExpectAllSay(
      "worker/1 runs another program than worker/0: it has variable "
      "network/dense_0/kernel of shape [4, 5]",
      RunWith("model", TwoWorkers()));
  // The others go on without it.
  auto ends = RunWith("model", OnPs(), {"--iterations=30"});
  const Ended refused = ends["worker/0"];
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.lines,
              ElementsAre(HasSubstr("runs another program than the chief: "
                                    "model.layer[0]")));
  ends.erase("worker/0");
  for (const auto& [task, ended] : ends) EXPECT_EQ(ended.code, 0) << task;
}

TEST(FaultsTest, AWorkerThatEndsEarly) {
  ExpectAllSay(
      "all must do the same in the same order, and end after as many "
      "steps",
      RunWith("early", TwoWorkers()));
  // Others take its iterations.
  for (const auto& [task, ended] :
       RunWith("early", OnPs(), {"--iterations=30"})) {
    EXPECT_EQ(ended.code, 0) << task << absl::StrJoin(ended.lines, "\n");
  }
}

TEST(FaultsTest, AFlagThatIsWrong) {
  ExpectAllSay("wrong_flag", RunWith("", Default(), {"--wrong_flag=1"}));
  ExpectAllSay("cuda:7", RunWith("", Default(), {"--devices=cuda:7"}));
  ExpectAllSay("--strategy", RunWith("", Default(), {"--strategy=mirored"}));
}

}  // namespace
}  // namespace parasol
