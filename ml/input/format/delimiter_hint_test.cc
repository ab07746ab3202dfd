#include "ml/input/format/delimiter_hint.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(DelimiterHintTest, NamesTheDelimiterBehindWhichTheColumnIs) {
  EXPECT_EQ(DelimiterHint("b", {"a;b;c"}), "; is csv.delimiter: \";\" meant?");
  EXPECT_EQ(DelimiterHint("b", {"a\t\"b\" \tc"}),
            "; is csv.delimiter: \"\\t\" meant?");
  // A comma in a name was taken for one between names.
  EXPECT_EQ(DelimiterHint("city", {"name", "first; city "}),
            "; is csv.delimiter: \";\" meant?");
}

TEST(DelimiterHintTest, IsEmptyForOtherSlips) {
  EXPECT_EQ(DelimiterHint("agee", {"user", "age"}), "");
  EXPECT_EQ(DelimiterHint("a;b", {"a;b", "c"}), "");
}

TEST(DelimiterHintTest, OneColumnIsDoubtful) {
  EXPECT_EQ(DelimiterHint("y", {"a:b"}), "; is csv.delimiter right?");
}

}  // namespace
}  // namespace parasol
