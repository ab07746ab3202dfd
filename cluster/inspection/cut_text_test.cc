#include "cluster/inspection/cut_text.h"

#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(CutTextTest, WhatIsCutSaysSo) {
  const std::string text(20, 'x');
  EXPECT_EQ(CutText(text, 20), text);
  EXPECT_EQ(CutText(text, 19), "xxxxxxxxxxxx\n(cut)\n");
  EXPECT_EQ(CutText("", 16), "");
}

}  // namespace
}  // namespace parasol
