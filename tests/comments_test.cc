// The rule for header comments, counted over the whole source tree: a comment
// starts with a noun or with a verb in the third person, so that it is read
// once.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "tests/source_tree.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;

// Prepositions, conjunctions and pronouns with which no comment starts.
constexpr char kForbidden[] =
    "Of|That|Those|By|Where|Whether|Whose|Who|Whoever|What|Which|From|In|On|At|"
    "With|Without|For|To|As|So|Such|Than|It|Its|They|Them|Their|These|This|"
    "While|After|Before|Until|When|If|Because|Into|Onto|Over|Under|Between|"
    "Among|Through|During|Per|About|Against|Since|Like|Not";

// Returns the first lines of the comments of `header`, trailing comments
// included, that start with a forbidden word: "path:line: text".
std::vector<std::string> BadComments(const SourceFile& header) {
  static const RE2 block(absl::StrCat("^//+ +(", kForbidden, ")\\b"));
  // A word in a trailing comment may be in lower case.
  static const RE2 trailing(absl::StrCat("(?i)// +(", kForbidden, ")\\b"));
  std::vector<std::string> found;
  bool in_block = false;
  for (size_t i = 0; i < header.lines.size(); ++i) {
    const std::string line(absl::StripLeadingAsciiWhitespace(header.lines[i]));
    const bool is_block = absl::StartsWith(line, "//");
    const bool bad = is_block ? !in_block && RE2::PartialMatch(line, block)
                              : RE2::PartialMatch(line, trailing);
    if (bad) found.push_back(absl::StrCat(header.path, ":", i + 1, ": ", line));
    in_block = is_block;
  }
  return found;
}

// Returns how often the comments of `file` point at a word instead of saying
// it: how often `pointer` is in them.
int CountPointers(const SourceFile& file) {
  static const RE2 comment("(?:^|\\s)//+ ?(.*)$");
  static const RE2 pointer("\\b(?:[Tt]hose|[Tt]hat) of\\b|\\bThe same\\b");
  std::string text;
  for (const std::string& line : file.lines) {
    std::string words;
    if (RE2::PartialMatch(line, comment, &words)) {
      absl::StrAppend(&text, words, " ");
    } else {
      text += "\n";
    }
  }
  return RE2::GlobalReplace(&text, pointer, "");
}

TEST(CommentsTest, PointersAreCountedAcrossLines) {
  SourceFile file;
  file.lines = {"// Values, and those",  "// of others; that of one.",
                "int a;\t// The same",   "const char* b = \"that of\";",
                "// The samesame, that", "int of;"};
  EXPECT_EQ(CountPointers(file), 3);
}

// The reader of a `pointer` looks for the word that it stands for. A folder's
// number may fall, and is lowered here when it has.
TEST(CommentsTest, CommentsSayWhatTheySpeakOf) {
  const std::map<std::string, int> most = {
      {"base", 0},        {"chief", 0},       {"cluster", 0},
      {"coordinator", 0}, {"deploy", 0},      {"docs", 0},
      {"evaluator", 0},   {"ml", 0},          {"parameters", 0},
      {"ps", 0},          {"serving", 0},     {"storage", 0},
      {"tests", 0},       {"third_party", 0}, {"tool", 0},
      {"worker", 0}};
  std::map<std::string, int> counts;
  std::vector<std::string> tops;
  for (const auto& [top, count] : most) tops.push_back(top);
  for (const SourceFile& file : ReadSourceTree(tops)) {
    counts[file.top()] += CountPointers(file);
  }
  for (const auto& [top, count] : most) {
    EXPECT_LE(counts[top], count)
        << top << ": comments with \"those of\", \"that of\" or \"The same\": "
        << "say who does what to what";
  }
}

TEST(CommentsTest, FragmentsAreFound) {
  SourceFile header;
  header.path = "h.h";
  header.lines = {"// Of its place in an index.",
                  "class A {",
                  "  int rows = 0;  // of the table",
                  "  // The rows of",
                  "  // That table.",
                  "  int Rows();",
                  "};"};
  EXPECT_THAT(BadComments(header),
              ElementsAre("h.h:1: // Of its place in an index.",
                          "h.h:3: int rows = 0;  // of the table"));
}

TEST(CommentsTest, HeaderCommentsStartWithANounOrAVerb) {
  const std::vector<SourceFile> tree =
      ReadSourceTree({"base", "chief", "cluster", "coordinator", "deploy",
                      "docs", "evaluator", "ml", "parameters", "ps", "serving",
                      "storage", "tests", "third_party", "tool", "worker"});
  ASSERT_THAT(tree.size(), Gt(500));
  std::vector<std::string> found;
  for (const SourceFile& file : tree) {
    if (!file.is_header()) continue;
    for (std::string& comment : BadComments(file)) {
      found.push_back(std::move(comment));
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace parasol
