#include "cluster/check/one_line.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(OneLineTest, ControlCharactersAreEscapedAndQuotesStay) {
  EXPECT_EQ(OneLine("column \"a\\b\": é, 7 %"), "column \"a\\b\": é, 7 %");
  EXPECT_EQ(OneLine("a\x1b[31m\nb\x7f\xc2\x9b"),
            "a\\x1b[31m\\nb\\x7f\\xc2\\x9b");
  EXPECT_EQ(OneLine(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(OneLine("\xff"), "\\xff");
  EXPECT_EQ(OneLine(""), "");
}

}  // namespace
}  // namespace parasol
