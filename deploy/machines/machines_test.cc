#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/k8s/testing/yaml_documents.h"
#include "deploy/testing/program_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"

// The units of systemd and the playbook of Ansible.
namespace parasol {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kUnits[] = "deploy/machines/systemd";
constexpr char kPlaybook[] = "deploy/machines/ansible";
// Role to unit.
const std::map<std::string, std::string> kUnitOf = {
    {"chief", "parasol-chief.service"},
    {"ps", "parasol-ps@.service"},
    {"worker", "parasol-worker@.service"},
    {"evaluator", "parasol-evaluator.service"}};

std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the settings of a unit: all values of each key.
std::map<std::string, std::vector<std::string>> SettingsOf(
    const std::string& unit) {
  std::string text = TextOf(fs::path(kUnits) / unit);
  RE2::GlobalReplace(&text, R"( \\\n +)", " ");
  std::map<std::string, std::vector<std::string>> settings;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.size() == 2 && parts[0][0] != '#') {
      settings[parts[0]].push_back(parts[1]);
    }
  }
  return settings;
}

// Returns the names of the variables that a file gives values.
std::set<std::string> VariablesOf(const fs::path& path) {
  std::set<std::string> names;
  std::string name;
  const std::string text = TextOf(path);
  re2::StringPiece rest = text;
  const RE2 line("(?m)^([A-Z_]+)=");
  while (RE2::FindAndConsume(&rest, line, &name)) names.insert(name);
  return names;
}

TEST(UnitsTest, SystemdKnowsEachSetting) {
  constexpr char kAnalyze[] = "/usr/bin/systemd-analyze";
  if (access(kAnalyze, X_OK) != 0) GTEST_SKIP() << kAnalyze << " is not here";
  const fs::path folder = fs::path(testing::TempDir()) / "units";
  fs::create_directories(folder);
  std::vector<std::string> command = {kAnalyze, "verify",
                                      "--recursive-errors=no", "--man=no"};
  for (const auto& [role, unit] : kUnitOf) {
    std::string text = TextOf(fs::path(kUnits) / unit);
    // The programs are not installed here.
    ASSERT_TRUE(RE2::Replace(&text, "ExecStart=/usr/bin/parasol-" + role,
                             "ExecStart=/bin/true"));
    std::string name = unit;
    RE2::Replace(&name, "@", "@0");
    std::ofstream(folder / name) << text;
    command.push_back(folder / name);
  }
  fs::copy_file(fs::path(kUnits) / "parasol.target", folder / "parasol.target",
                fs::copy_options::overwrite_existing);
  ASSERT_OK_AND_ASSIGN(const CompletedProcess verified,
                       RunSubprocess({.argv = command}, absl::Minutes(1)));
  EXPECT_EQ(verified.end.code(), 0) << verified.standard_error;
  EXPECT_EQ(verified.standard_error, "");
}

TEST(UnitsTest, EachFlagIsOneOfItsProgramAndEachVariableIsSet) {
  const std::set<std::string> variables =
      VariablesOf(fs::path(kUnits) / "parasol.env");
  for (const auto& [role, unit] : kUnitOf) {
    SCOPED_TRACE(unit);
    const std::set<std::string> flags = FlagsOfProgram(role);
    const std::vector<std::string> words =
        absl::StrSplit(SettingsOf(unit)["ExecStart"].at(0), ' ');
    EXPECT_EQ(words[0], "/usr/bin/parasol-" + role);
    int checked = 0;
    std::string name;
    for (const std::string& word : words) {
      if (RE2::PartialMatch(word, "^--([a-z_]+)", &name)) {
        ++checked;
        EXPECT_TRUE(flags.contains(name)) << word;
      }
      if (RE2::PartialMatch(word, R"(\$\{?([A-Z_]+))", &name)) {
        EXPECT_TRUE(variables.contains(name)) << word;
      }
    }
    EXPECT_GE(checked, 4);
    const bool is_template = absl::StrContains(unit, '@');
    EXPECT_THAT(words, Contains(absl::StrCat("--task=", role,
                                             is_template ? "/%i" : "/0")));
  }
}

TEST(UnitsTest, ATaskIsStartedAgainByItsExitCode) {
  for (const auto& [role, unit] : kUnitOf) {
    SCOPED_TRACE(unit);
    auto settings = SettingsOf(unit);
    EXPECT_EQ(settings["Restart"].at(0), "on-failure");
    EXPECT_EQ(settings["RestartPreventExitStatus"].at(0), "1 2");
    EXPECT_EQ(settings["SuccessExitStatus"].at(0), "143");
    // A ps has 40 s for a checkpoint, and 10 s more.
    EXPECT_EQ(settings["TimeoutStopSec"].at(0), "60");
    // Root's file: no other user reads it.
    EXPECT_EQ(settings["LoadCredential"].at(0), "token:/etc/parasol/token");
    EXPECT_EQ(settings["PartOf"].at(0), "parasol.target");
  }
}

std::vector<Json> TasksOfThePlaybook() {
  const auto documents =
      YamlDocuments(TextOf(fs::path(kPlaybook) / "site.yml"));
  EXPECT_OK(documents);
  if (!documents.ok()) return {};
  const Json& play = documents->at(0).at(0);
  std::vector<Json> tasks = play.at("tasks");
  for (const Json& handler : play.at("handlers")) tasks.push_back(handler);
  return tasks;
}

TEST(PlaybookTest, AnsibleAcceptsIt) {
  constexpr char kAnsible[] = "/usr/bin/ansible-playbook";
  if (access(kAnsible, X_OK) != 0) GTEST_SKIP() << kAnsible << " is not here";
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess checked,
      RunSubprocess(
          {.argv = {kAnsible, "--syntax-check", "-i",
                    absl::StrCat(kPlaybook, "/inventory.ini"),
                    absl::StrCat(kPlaybook, "/site.yml")},
           .environment = {{"HOME", testing::TempDir()},
                           {"LC_ALL", "C.UTF-8"},
                           {"ANSIBLE_LOCAL_TEMP", testing::TempDir()}}},
          absl::Minutes(2)));
  EXPECT_EQ(checked.end.code(), 0) << checked.standard_error;
}

TEST(PlaybookTest, EachTaskHasANameAndFilesThatThereAre) {
  const std::vector<Json> tasks = TasksOfThePlaybook();
  EXPECT_GT(tasks.size(), 10u);
  int files = 0;
  for (const Json& task : tasks) {
    ASSERT_TRUE(task.contains("name")) << task;
    SCOPED_TRACE(task["name"]);
    int modules = 0;
    for (const auto& [key, arguments] : task.items()) {
      if (!absl::StartsWith(key, "ansible.builtin.")) continue;
      ++modules;
      const std::string source = arguments.value("src", "");
      // The user's own files are variables.
      if (source.empty() || absl::StartsWith(source, "{{")) continue;
      const std::string folder =
          absl::EndsWith(key, ".template") ? "templates/" : "";
      for (const Json& item : task.value("loop", Json::array({""}))) {
        std::string path = absl::StrCat(kPlaybook, "/", folder, source);
        RE2::Replace(&path, R"(\{\{ item \}\})", item.get<std::string>());
        ++files;
        EXPECT_TRUE(fs::exists(path)) << path;
      }
    }
    EXPECT_EQ(modules, 1);
  }
  EXPECT_EQ(files, 1 + 2 + 5);
}

TEST(PlaybookTest, TheTokenIsRootsAndInNoLog) {
  for (const Json& task : TasksOfThePlaybook()) {
    if (!absl::StrContains(task.dump(), "parasol_token")) continue;
    EXPECT_EQ(task["ansible.builtin.copy"]["mode"], "0600");
    EXPECT_EQ(task["no_log"], true);
    return;
  }
  ADD_FAILURE() << "no task copies the token";
}

TEST(PlaybookTest, EachUnitHasItsTaskAndTheSameVariables) {
  const std::string text = TextOf(fs::path(kPlaybook) / "site.yml");
  for (const auto& [role, unit] : kUnitOf) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("- ", unit, "\n")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("in groups['", role, "']")));
  }
  EXPECT_EQ(VariablesOf(fs::path(kPlaybook) / "templates/parasol.env.j2"),
            VariablesOf(fs::path(kUnits) / "parasol.env"));
}

}  // namespace
}  // namespace parasol
