#include "base/strict_json.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(StrictJsonTest, KeepsEveryKindOfValue) {
  ASSERT_OK_AND_ASSIGN(
      const nlohmann::json value,
      ParseStrictJson(
          R"( {"a": [1, -2, 0.5, true, null, {"b": [[]]}], "c": "\u00e9"} )"));
  EXPECT_EQ(value.dump(),
            "{\"a\":[1,-2,0.5,true,null,{\"b\":[[]]}],\"c\":\"\xc3\xa9\"}");
}

TEST(StrictJsonTest, TheSameKeyInTwoObjectsIsNotTwice) {
  EXPECT_OK(ParseStrictJson(R"({"a": {"x": 1}, "b": {"x": 1, "a": 2}})"));
}

TEST(StrictJsonTest, NamesThePositionOfWhatIsNotJson) {
  struct Case {
    std::string text;
    std::string position;
  };
  const Case cases[] = {
      {"", "line 1, column 1"},
      {" \n ", "line 2, column"},
      {"{cluster:}", "line 1, column 2"},
      {"{} x", "line 1, column 4"},
      {"{\"a\": 1,\n \"b\": }", "line 2, column 7"},
      {"[1,]", "line 1, column 4"},
      {"[01]", "line 1, column 3"},
      {"{'a': 1}", "line 1, column 2"},
      {"{\"a\": /* no */ 1}", "line 1, column 7"},
      {"[NaN]", "line 1, column 2"},
      {"[1e999]", "line 1, column"},
      {"\"\xff\"", "line 1, column 2"},
      {"\"\xed\xa0\x80\"", "line 1, column"},
      {std::string("{}\0{", 4), "line 1, column 3"},
      {"\"a\nb\"", "line"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ParseStrictJson(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.position), HasSubstr("not JSON"),
                               Not(HasSubstr("\n")), Not(HasSubstr("\xff")))));
  }
}

TEST(StrictJsonTest, RefusesAKeyTwiceAtAnyDepthAndSaysWhere) {
  EXPECT_THAT(ParseStrictJson("{\"x\": [{\"a\": 1,\n \"a\": 1}]}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "line 2, column 4: key \"a\" appears twice"));
  EXPECT_THAT(ParseStrictJson(R"({"a": 1, "\u0061": 1})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"a\" appears twice")));
}

TEST(StrictJsonTest, DepthIsLimited) {
  const auto nested = [](size_t depth) {
    return absl::StrCat(std::string(depth, '['), std::string(depth, ']'));
  };
  EXPECT_OK(ParseStrictJson(nested(kMaxJsonDepth)));
  EXPECT_THAT(ParseStrictJson(nested(kMaxJsonDepth + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "line 1, column 65: nested deeper than 64"));
  EXPECT_THAT(ParseStrictJson(std::string(kMaxJsonBytes, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(StrictJsonTest, LengthIsLimited) {
  const std::string full(kMaxJsonBytes - 2, ' ');
  EXPECT_OK(ParseStrictJson(absl::StrCat("{}", full)));
  EXPECT_THAT(
      ParseStrictJson(absl::StrCat("{} ", full)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1048577 bytes")));
}

TEST(StrictJsonTest, OrderIsKeptAndAKeyTwiceRefused) {
  ASSERT_OK_AND_ASSIGN(const nlohmann::ordered_json value,
                       ParseOrderedJson(R"({"b": 1, "a": {"d": 2, "c": 3}})"));
  EXPECT_EQ(value.dump(), R"({"b":1,"a":{"d":2,"c":3}})");
  EXPECT_THAT(ParseOrderedJson(R"({"b": 1, "a": 2, "b": 3})"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"b\" appears twice")));
}

// Each with all before it would take half a minute.
TEST(StrictJsonTest, ManyKeysOfOneObjectAreNotComparedWithEachOther) {
  std::string text = "{";
  for (int i = 0; i < 60'000; ++i) absl::StrAppend(&text, "\"", i, "\": 1, ");
  ASSERT_OK_AND_ASSIGN(const nlohmann::ordered_json value,
                       ParseOrderedJson(text + "\"z\": 1}"));
  EXPECT_EQ(value.size(), 60'001u);
}

TEST(StrictJsonTest, AKeyThatIsRefusedIsQuotedInPart) {
  const std::string key = "\"" + std::string(300'000, 'k') + "\": 1";
  const auto refused = ParseStrictJson(absl::StrCat("{", key, ", ", key, "}"));
  EXPECT_LT(refused.status().message().size(), 500u);
}

TEST(StrictJsonTest, MembersAreVisitedOneAfterTheOther) {
  std::vector<std::string> visited;
  EXPECT_OK(VisitJsonMembers(
      R"({"a": {"x": [1, {"y": 2}]}, "b": [], "a": null, "c": 0.5})",
      [&](const std::string& name, const nlohmann::json& value) {
        visited.push_back(name + "=" + value.dump());
        return absl::OkStatus();
      }));
  EXPECT_THAT(visited,
              ElementsAre(R"(a={"x":[1,{"y":2}]})", "b=[]", "a=null", "c=0.5"));
}

absl::Status VisitNothing(const std::string&, const nlohmann::json&) {
  return absl::OkStatus();
}

TEST(StrictJsonTest, WhatIsNoObjectHasNoMembers) {
  for (const char* text : {"[]", "1", "null", "\"a\""}) {
    EXPECT_THAT(VisitJsonMembers(text, VisitNothing),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("not an object")))
        << text;
  }
  EXPECT_THAT(VisitJsonMembers("{\"a\": [}", VisitNothing),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 1, column 8: not JSON")));
}

TEST(StrictJsonTest, AVisitEndsWithItsFirstError) {
  int visits = 0;
  EXPECT_THAT(VisitJsonMembers(R"({"a": 1, "b": 2})",
                               [&](const auto&, const auto&) {
                                 ++visits;
                                 return absl::DataLossError("enough");
                               }),
              StatusIs(absl::StatusCode::kDataLoss, "enough"));
  EXPECT_EQ(visits, 1);
}

TEST(StrictJsonTest, MembersAreLimitedInDepthAndValuesNotInNumber) {
  EXPECT_THAT(
      VisitJsonMembers("{\"a\": " + std::string(20'000'000, '['), VisitNothing),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("nested deeper than 64")));
  std::string zeros = "0";
  for (size_t i = 1; i < kMaxMemberValues; ++i) zeros += ",0";
  EXPECT_THAT(VisitJsonMembers("{\"a\": [" + zeros + "]}", VisitNothing),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 100000 values in one member")));
  EXPECT_OK(VisitJsonMembers("{\"a\": [" + zeros + "]}", VisitNothing,
                             kMaxMemberValues + 1));
  EXPECT_THAT(VisitJsonMembers("{\"a\": [1, 2]}", VisitNothing, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more than 2 values in one member")));
  std::string members = "{";
  for (size_t i = 0; i < 2 * kMaxMemberValues; ++i) {
    absl::StrAppend(&members, "\"", i, "\": 1, ");
  }
  EXPECT_OK(VisitJsonMembers(members + "\"z\": 1}", VisitNothing));
}

}  // namespace
}  // namespace parasol
