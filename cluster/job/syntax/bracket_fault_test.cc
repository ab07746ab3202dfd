#include "cluster/job/syntax/bracket_fault.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// Returns "line:column message", counted from 1.
std::string FaultOf(const std::string& text) {
  const auto fault = FindBracketFault(text);
  if (!fault.has_value()) return "none";
  return absl::StrCat(fault->line + 1, ":", fault->column + 1, " ",
                      fault->message);
}

TEST(BracketFaultTest, BalancedTextsHaveNone) {
  EXPECT_EQ(FaultOf("a { b: [1, 2] c < d: \"}\\\"\" > } # {\n"), "none");
  EXPECT_EQ(FaultOf(""), "none");
}

TEST(BracketFaultTest, ABlockThatIsNotClosedIsNamed) {
  EXPECT_EQ(FaultOf("model {\n  layer {\n    dense { units: 1 }\n"),
            "2:9 \"layer {\" is not closed: the file ends inside it, without "
            "its }");
  EXPECT_EQ(FaultOf("end { epochs: 1"),
            "1:5 \"end {\" is not closed: the file ends inside it, without its "
            "}");
  EXPECT_EQ(FaultOf("a: [1, 2\n"),
            "1:4 \"a [\" is not closed: the file ends inside it, without its "
            "]");
}

TEST(BracketFaultTest, TheIndentationSaysWhichBlockItIs) {
  EXPECT_EQ(FaultOf("model {\n  layer {\n    dense { units: 1 }\n  loss { }\n"
                    "}\ntrain { batch_size: 1 }\n"),
            "2:9 \"layer {\" is not closed: the file lacks its }");
}

TEST(BracketFaultTest, ABracketThatClosesNothingIsNamed) {
  EXPECT_EQ(FaultOf("end { epochs: 1 }\n}\n"),
            "2:1 this } closes nothing: no block is open; remove it, or look "
            "for one too many before it");
  EXPECT_EQ(FaultOf("a: [1, 2 }\n"),
            "1:10 this } is where \"a [\" of line 1 needs its ]");
}

TEST(BracketFaultTest, AStringWithoutItsQuoteIsNamed) {
  EXPECT_EQ(FaultOf("name: \"a\nend { epochs: 1 }\n"),
            "1:7 the string that begins here has no closing \" in its line, "
            "nor behind it");
  EXPECT_EQ(FaultOf("name: \"a\nother: \"b\"\nend {}\n"),
            "1:7 the string that begins here has no closing \" in its line");
  EXPECT_EQ(FaultOf("a { name: 'x }\nb: 'y' }\n"),
            "1:11 the string that begins here has no closing ' in its line");
}

}  // namespace
}  // namespace parasol
