#include "ml/input/feature/number.h"

#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(NumberTest, ReadsDecimals) {
  for (const std::string text :
       {"0", "-0", "7", "+7", "-7", "123456789012345", "1234567890123456789",
        "1.5", "-.5", "5.", "0.1", "+0.30000000000000004", "1e3", "1E-3",
        "-1.25e+2", "3.14159265358979", "999999999999999.9"}) {
    EXPECT_EQ(ParseNumber(text), std::strtod(text.c_str(), nullptr)) << text;
  }
  EXPECT_TRUE(std::signbit(*ParseNumber("-0")));
}

TEST(NumberTest, WhatIsTooSmallIsZero) {
  EXPECT_EQ(ParseNumber("1e-400"), 0);
  EXPECT_EQ(ParseNumber("-1e-400"), 0);
  EXPECT_EQ(ParseNumber("-1e400"), std::nullopt);
}

TEST(NumberTest, IdsHave64BitsOfEitherKind) {
  EXPECT_EQ(ParseId("+18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseId("-1"), UINT64_MAX);
  EXPECT_EQ(ParseId("9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(ParseId("-9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(ParseId("1844674407370955161"), 1844674407370955161u);
  EXPECT_EQ(ParseId("999999999999999999"), 999999999999999999u);
  EXPECT_EQ(ParseId("000000000000000000000007"), 7u);
  EXPECT_EQ(ParseId("0"), 0u);
  for (const std::string text :
       {"", "-", "1 ", "+", "1:", "18446744073709551616",
        "-9223372036854775809", "1.0", "+-1", "--1"}) {
    EXPECT_EQ(ParseId(text), std::nullopt) << text;
  }
}

TEST(NumberTest, IntegersMayBeOfAnySize) {
  for (const std::string text :
       {"0", "-18446744073709551616", "+99999999999999999999999"}) {
    EXPECT_TRUE(IsInteger(text)) << text;
  }
  for (const std::string text : {"", "-", "+-1", "1.0", "1e3", " 1"}) {
    EXPECT_FALSE(IsInteger(text)) << text;
  }
}

TEST(NumberTest, RefusesAllElse) {
  for (const std::string text :
       {"",    "+",         "-",     ".",     "-.",  "+-1", "--1",
        "1 ",  " 1",        "1x",    "1.2.3", "e5",  "1e",  "nan",
        "inf", "-infinity", "1e999", "0x10",  "1,5", "?"}) {
    EXPECT_EQ(ParseNumber(text), std::nullopt) << text;
  }
}

TEST(NumberTest, IsTheNearestDouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const std::string text =
        absl::StrCat(random() % 1000000, ".", random() % 100000000);
    ASSERT_EQ(ParseNumber(text), std::strtod(text.c_str(), nullptr)) << text;
  }
}

TEST(NumberTest, IntegersHaveNoFractionAndFit64Bits) {
  EXPECT_EQ(ParseInteger("-12"), -12);
  EXPECT_EQ(ParseInteger("+12"), 12);
  EXPECT_EQ(ParseInteger("9223372036854775807"), INT64_MAX);
  for (const std::string text :
       {"", "-", "1.0", "1e3", "9223372036854775808", "12x", " 1"}) {
    EXPECT_EQ(ParseInteger(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace parasol
