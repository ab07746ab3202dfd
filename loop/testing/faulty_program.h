#ifndef PARASOL_LOOP_TESTING_FAULTY_PROGRAM_H_
#define PARASOL_LOOP_TESTING_FAULTY_PROGRAM_H_

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
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Runs of the program faulty_main.cc as processes under every strategy.
namespace parasol {

// Less than the time that a chief waits for a task which does not leave.
inline constexpr absl::Duration kFaultyLimit = absl::Seconds(25);

using Lines = std::vector<std::string>;

// The processes of a strategy: how many of each role; none: one without a
// cluster.
struct Way {
  std::string name;
  std::vector<std::pair<std::string, int>> roles = {};
  Lines flags = {};
  // Variables of the environment of one task, "worker/1", or "" without a
  // cluster.
  std::string task = {};
  std::map<std::string, std::string> environment = {};
  // True: when that task has ended it is started again, without them.
  bool is_started_again = false;
};

inline Way Default() { return {.name = "default"}; }
inline Way Mirrored() {
  return {.name = "mirrored",
          .flags = {"--devices=cpu:0,cpu:1", "--faulty_replica=1"}};
}
inline Way TwoWorkers() {
  return {.name = "two_workers",
          .roles = {{"worker", 2}},
          .flags = {"--faulty_replica=1"}};
}
inline Way OnPs() {
  return {
      .name = "on_ps",
      .roles = {{"chief", 1}, {"ps", 1}, {"worker", 2}},
      .flags = {
          "--faulty_replica=1",
          absl::StrCat(
              "--checkpoint_dir=", testing::TempDir(), "/faults_ps_",
              testing::UnitTest::GetInstance()->current_test_info()->name())}};
}

// How a process has ended.
struct Ended {
  int code = -1;
  Lines lines = {};  // what it has said on stderr, without its log
};

inline std::string ClusterOf(const Way& strategy) {
  int tasks = 0;
  for (const auto& [role, count] : strategy.roles) tasks += count;
  std::vector<int> ports = *FreeLoopbackPorts(tasks);
  Lines members;
  for (const auto& [role, count] : strategy.roles) {
    Lines addresses;
    for (int i = 0; i < count; ++i) {
      addresses.push_back(absl::StrCat("\"127.0.0.1:", ports.back(), "\""));
      ports.pop_back();
    }
    members.push_back(
        absl::StrCat("\"", role, "\": [", absl::StrJoin(addresses, ", "), "]"));
  }
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}");
}

inline Ended EndOf(Subprocess& process, const std::string& task) {
  const auto end = process.Wait(kFaultyLimit);
  EXPECT_OK(end) << task;
  if (!end.ok()) process.Kill();
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(process.error_pipe(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, n);
  Ended ended = {.code = end.ok() ? end->code() : -1};
  for (const absl::string_view line :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (testing::Value(std::string(line),
                       testing::MatchesRegex("[IW][0-9]{4} .*"))) {
      continue;
    }
    ended.lines.emplace_back(line);
  }
  return ended;
}

inline std::unique_ptr<Subprocess> Start(
    Lines argv, const std::string& tf_config,
    const std::map<std::string, std::string>& environment) {
  SubprocessOptions options;
  for (const auto& [name, value] : environment) {
    options.environment[name] = value;
  }
  options.argv = std::move(argv);
  options.environment["TF_CONFIG"] = tf_config;
  options.standard_error = OutputTo::Pipe();
  auto started = Subprocess::Start(options);
  EXPECT_OK(started);
  return *std::move(started);
}

// Returns the ends of all processes of the program; key: "worker/1", "" for one
// without a cluster. A task that was started again has another end under the
// key "first".
inline std::map<std::string, Ended> RunWith(const std::string& fault,
                                            const Way& strategy,
                                            const Lines& flags = {}) {
  Lines program = {"loop/testing/faulty", absl::StrCat("--fault=", fault)};
  program.insert(program.end(), strategy.flags.begin(), strategy.flags.end());
  program.insert(program.end(), flags.begin(), flags.end());
  std::map<std::string, std::unique_ptr<Subprocess>> processes;
  const std::string cluster = ClusterOf(strategy);
  const auto start =
      [&](const std::string& task,
          const std::map<std::string, std::string>& environment) {
        const std::vector<std::string> parts = absl::StrSplit(task, '/');
        processes[task] = Start(
            parts[0] == "ps" ? Lines{"ps/ps"} : program,
            task.empty() ? ""
                         : absl::StrCat("{\"cluster\": ", cluster,
                                        ", \"task\": {\"type\": \"", parts[0],
                                        "\", \"index\": ", parts[1], "}}"),
            environment);
      };
  const std::map<std::string, std::string> none;
  if (strategy.roles.empty()) start("", strategy.environment);
  for (const auto& [role, count] : strategy.roles) {
    for (int i = 0; i < count; ++i) {
      const std::string task = absl::StrCat(role, "/", i);
      start(task, task == strategy.task ? strategy.environment : none);
    }
  }
  std::map<std::string, Ended> ends;
  if (strategy.is_started_again) {
    ends["first"] = EndOf(*processes[strategy.task], strategy.task);
    start(strategy.task, none);
  }
  for (const auto& [task, process] : processes) {
    ends[task] = EndOf(*process, task);
  }
  return ends;
}

// All processes fail with one line that has `text`.
inline void ExpectAllSay(const std::string& text,
                         const std::map<std::string, Ended>& ends) {
  for (const auto& [task, ended] : ends) {
    SCOPED_TRACE(task);
    EXPECT_THAT(ended.code, testing::AnyOf(1, 2));
    EXPECT_THAT(ended.lines, testing::ElementsAre(testing::HasSubstr(text)));
  }
}

}  // namespace parasol

#endif  // PARASOL_LOOP_TESTING_FAULTY_PROGRAM_H_
