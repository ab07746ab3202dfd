#include "base/shown_text.h"

#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(ShownTextTest, LettersOfEveryAlphabetStay) {
  for (const std::string text :
       {"age", "Gekündigt?", "北京", "Ünïcode €", "😀"}) {
    EXPECT_EQ(ShownText(text), text);
  }
}

TEST(ShownTextTest, WhatCannotBePrintedIsEscaped) {
  EXPECT_EQ(ShownText("a\nb\x1b[2J\"\\"), "a\\nb\\x1b[2J\\\"\\\\");
  EXPECT_EQ(ShownText("Gr\xf6\xdf"
                      "e"),
            "Gr\\xf6\\xdf"
            "e");
  EXPECT_EQ(ShownText("\xc3"), "\\xc3");                    // cut off
  EXPECT_EQ(ShownText("\xc0\x80"), "\\xc0\\x80");           // too long for 0
  EXPECT_EQ(ShownText("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(ShownText("\xc2\x85"), "\\xc2\\x85");           // a line's end
  EXPECT_EQ(ShownText("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
}

TEST(ShownTextTest, CharactersAreNotCutInTwo) {
  EXPECT_EQ(ShownText("abü", 3), "ab");
  EXPECT_EQ(ShownText("abü", 4), "abü");
}

TEST(ShownTextTest, AListOfNothingSaysSo) {
  EXPECT_EQ(ShownList({"user", "a\nb"}), "user, a\\nb");
  EXPECT_EQ(ShownList({}), "none");
}

TEST(OneLineTest, ControlCharactersAreEscapedAndQuotesStay) {
  EXPECT_EQ(OneLine("column \"a\\b\": é, 7 %"), "column \"a\\b\": é, 7 %");
  EXPECT_EQ(OneLine("a\x1b[31m\nb\x7f\xc2\x9b"),
            "a\\x1b[31m\\nb\\x7f\\xc2\\x9b");
  EXPECT_EQ(OneLine(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(OneLine("\xff"), "\\xff");
  EXPECT_EQ(OneLine(""), "");
}

TEST(ShapeTextTest, AxesAreInBrackets) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText({7}), "[7]");
  EXPECT_EQ(ShapeText({28, 28, -1}), "[28, 28, -1]");
}

}  // namespace
}  // namespace parasol
