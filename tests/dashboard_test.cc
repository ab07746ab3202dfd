// The metrics that rules and dashboard ask for, against those that there are.

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "re2/re2.h"
#include "tests/source_tree.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kRules[] = "deploy/prometheus/parasol.rules.yml";
constexpr char kDashboard[] = "deploy/prometheus/parasol_dashboard.json";

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the names under which the programs export what they register.
std::set<std::string> ExportedMetrics() {
  std::set<std::string> names;
  // As an argument, or as a constant.
  const RE2 added(R"((?:Add(Gauge|Counter|Histogram)\(\s*|k[A-Za-z]+\[\] = ))"
                  R"("(parasol_[a-z0-9_]+)\")");
  for (const SourceFile& file :
       ReadSourceTree({"base", "chief", "ps", "worker", "evaluator"})) {
    if (file.is_test()) continue;
    const std::string text = absl::StrJoin(file.lines, "\n");
    re2::StringPiece rest = text;
    std::string kind, name;
    while (RE2::FindAndConsume(&rest, added, &kind, &name)) {
      names.insert(name);
      if (kind != "Histogram") continue;
      for (const char* part : {"_bucket", "_sum", "_count"}) {
        names.insert(name + part);
      }
    }
  }
  return names;
}

// Returns all that is matched by the pattern's group.
std::set<std::string> Matches(const std::string& text, const RE2& pattern) {
  std::set<std::string> found;
  re2::StringPiece rest = text;
  std::string match;
  while (RE2::FindAndConsume(&rest, pattern, &match)) found.insert(match);
  return found;
}

std::set<std::string> RecordedMetrics() {
  return Matches(TextOf(kRules), RE2("record: ([a-z0-9_:]+)"));
}

// Returns what an expression asks for and nobody gives.
std::vector<std::string> Missing(std::string expression) {
  static const auto* const exported = new std::set(ExportedMetrics());
  static const auto* const recorded = new std::set(RecordedMetrics());
  std::vector<std::string> missing;
  const RE2 of_rules("([a-z_]+:parasol_[a-z0-9_:]+)");
  for (const std::string& name : Matches(expression, of_rules)) {
    if (!recorded->contains(name)) missing.push_back(name);
  }
  RE2::GlobalReplace(&expression, of_rules, "");
  for (const std::string& name :
       Matches(expression, RE2("(parasol_[a-z0-9_]+)"))) {
    if (!exported->contains(name)) missing.push_back(name);
  }
  return missing;
}

std::vector<nlohmann::json> Panels() {
  std::vector<nlohmann::json> panels;
  const auto dashboard = nlohmann::json::parse(TextOf(kDashboard));
  for (const auto& panel : dashboard.at("panels")) {
    if (panel.at("type") != "row") panels.push_back(panel);
  }
  return panels;
}

TEST(DashboardTest, TheSourcesHaveMetrics) {
  const std::set<std::string> names = ExportedMetrics();
  EXPECT_GT(names.size(), 60u);
  EXPECT_TRUE(names.contains("parasol_chief_global_step"));
  EXPECT_TRUE(names.contains("parasol_ps_apply_duration_seconds_bucket"));
  EXPECT_FALSE(names.contains("parasol_ps_apply_duration_seconds_max"));
}

TEST(DashboardTest, RulesAskForMetricsThatThereAre) {
  int expressions = 0;
  for (const std::string& expression : Matches(
           TextOf(kRules), RE2(R"(expr: ((?:>-\n)?(?s:.)*?)\n +[a-z- ]+:)"))) {
    ++expressions;
    EXPECT_THAT(Missing(expression), IsEmpty()) << expression;
  }
  EXPECT_GT(expressions, 10);
}

TEST(DashboardTest, PanelsAskForMetricsThatThereAreOfTheChosenJob) {
  const std::vector<nlohmann::json> panels = Panels();
  EXPECT_GT(panels.size(), 15u);
  std::set<int> ids;
  for (const auto& panel : panels) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << panel.at("id");
    EXPECT_THAT(panel.at("description"), Not("")) << panel.at("title");
    for (const auto& target : panel.at("targets")) {
      const std::string expression = target.at("expr");
      EXPECT_THAT(Missing(expression), IsEmpty()) << panel.at("title");
      EXPECT_THAT(expression, HasSubstr(R"({training_job="$training_job"})"));
    }
  }
}

TEST(DashboardTest, AMetricThatIsNotThereIsFound) {
  EXPECT_EQ(Missing("rate(parasol_chief_global_stop[5m]) + up").size(), 1u);
  EXPECT_EQ(Missing("training_job:parasol_stops:rate5m > 0").size(), 1u);
}

}  // namespace
}  // namespace parasol
