#include "cluster/cluster_spec/strict_json.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
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

}  // namespace
}  // namespace parasol
