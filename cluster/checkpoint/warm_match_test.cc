#include "cluster/checkpoint/warm_match.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeSource : public WarmSource {
 public:
  FakeSource(std::vector<Variable> variables, std::vector<Table> tables) {
    variables_ = std::move(variables);
    tables_ = std::move(tables);
  }
  absl::Status Read(size_t, int64_t, absl::Span<float>) override {
    return absl::UnimplementedError("not matched");
  }
  absl::Status VisitRows(size_t, RowsVisit) override {
    return absl::UnimplementedError("not matched");
  }
  absl::Status Verify() override { return absl::OkStatus(); }
};

// Variables "base/kernel" [3, 4], "base/bias" [4], "head/kernel" [4, 2]; table
// "users" of width 8.
CheckpointContents Contents() {
  CheckpointContents contents;
  const auto add = [&contents](const std::string& name,
                               const std::vector<int64_t>& shape) {
    durable::CheckpointVariable& variable = contents.variables.emplace_back();
    variable.set_name(name);
    variable.mutable_shape()->Assign(shape.begin(), shape.end());
  };
  add("base/kernel", {3, 4});
  add("base/bias", {4});
  add("head/kernel", {4, 2});
  durable::CheckpointTable& users = contents.tables.emplace_back();
  users.set_name("users");
  users.set_width(8);
  return contents;
}

const FakeSource& Same() {
  static const auto* const source = new FakeSource(
      {{"head/kernel", {4, 2}}, {"base/bias", {4}}, {"base/kernel", {3, 4}}},
      {{"items", 8}, {"users", 8}});
  return *source;
}

absl::StatusOr<WarmMatch> Match(const std::string& text,
                                const WarmSource& source) {
  job::WarmStart warm_start;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &warm_start));
  return MatchWarmStart(warm_start, Contents(), source);
}

TEST(WarmMatchTest, RowsThatAreAVariableTooAreNamedOnce) {
  const auto left_of = [](const std::string& text) {
    const FakeSource source({{"base/kernel", {3, 4}},
                             {"base/bias", {4}},
                             {"head/kernel", {4, 2}},
                             {"users/embeddings", {9, 8}}},
                            {{.name = "users", .width = 8, .variable = 3}});
    const absl::StatusOr<WarmMatch> match = Match(text, source);
    EXPECT_OK(match);
    return match.value_or(WarmMatch()).left;
  };
  EXPECT_THAT(left_of(""), IsEmpty());
  EXPECT_THAT(left_of("exclude: \"users\""), ElementsAre("users/embeddings"));
}

TEST(WarmMatchTest, TakesByName) {
  ASSERT_OK_AND_ASSIGN(const WarmMatch match, Match("", Same()));
  EXPECT_THAT(match.variables, ElementsAre(2, 1, 0));
  EXPECT_THAT(match.tables, ElementsAre(1));
  EXPECT_THAT(match.left, ElementsAre("items"));
}

TEST(WarmMatchTest, WhatIsExcludedBeginsAnew) {
  ASSERT_OK_AND_ASSIGN(const WarmMatch match,
                       Match("exclude: ['base/', 'users']", Same()));
  EXPECT_THAT(match.variables, ElementsAre(std::nullopt, std::nullopt, 0));
  EXPECT_THAT(match.tables, ElementsAre(std::nullopt));
  EXPECT_THAT(match.left,
              ElementsAre("base/bias", "base/kernel", "items", "users"));
}

TEST(WarmMatchTest, NamesAndTheirBeginningsMayDiffer) {
  const FakeSource source(
      {{"old/tower/kernel", {3, 4}}, {"old/tower/bias", {4}}, {"w", {4, 2}}},
      {{"people", 8}});
  ASSERT_OK_AND_ASSIGN(const WarmMatch match,
                       Match("map { from: 'old/tower/' to: 'base/' }"
                             "map { from: 'w' to: 'head/kernel' }"
                             "map { from: 'people' to: 'users' }",
                             source));
  EXPECT_THAT(match.variables, ElementsAre(0, 1, 2));
  EXPECT_THAT(match.tables, ElementsAre(0));
  EXPECT_THAT(match.left, IsEmpty());
  // "" begins every name.
  const FakeSource wrapped({{"model/base/kernel", {3, 4}},
                            {"model/base/bias", {4}},
                            {"model/head/kernel", {4, 2}}},
                           {});
  EXPECT_OK(Match("map { from: 'model/' } exclude: 'users'", wrapped));
}

TEST(WarmMatchTest, AllFaultsAreNamedAtOnce) {
  const FakeSource source(
      {{"bass/kernel", {3, 4}}, {"base/bias", {5}}, {"head/kernel", {4, 2}}},
      {{"users", 16}});
  EXPECT_THAT(
      Match("map { from: 'a' to: 'b' } exclude: 'heads/'", source).status(),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("has no variable \"base/kernel\" (it has "
                          "\"bass/kernel\", \"head/kernel\", \"base/bias\")"),
                HasSubstr("\"base/bias\" is [5] there, [4] in the job"),
                HasSubstr("\"users\" is of width 16 there, 8 in the job"),
                HasSubstr("map[0].to \"b\" is nothing of the job"),
                HasSubstr("exclude \"heads/\" is nothing of the job"),
                HasSubstr("use warm_start.map"))));
  EXPECT_THAT(Match("", FakeSource({}, {})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has no table \"users\" (it has none)")));
}

}  // namespace
}  // namespace parasol
