#include "deploy/local/progress_display.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(ProgressDisplayTest, TerminalLineIsWrittenOverAndCutToFit) {
  ProgressDisplay display(/*columns=*/8);
  EXPECT_EQ(display.ProgressText("step 1 of 9", kStart), "\r\x1b[Kstep 1 ");
  EXPECT_EQ(display.ProgressText("step 2", kStart), "");
  EXPECT_EQ(display.ProgressText("step 2", kStart + absl::Milliseconds(200)),
            "\r\x1b[Kstep 2");
}

TEST(ProgressDisplayTest, ALineThatIsTooLongLosesWholeParts) {
  ProgressDisplay display(/*columns=*/30);
  EXPECT_EQ(
      display.ProgressText("step 1/9 (11 %)  8 s left  loss 0.25", kStart),
      "\r\x1b[Kstep 1/9 (11 %)  8 s left");
}

TEST(ProgressDisplayTest, MessageReplacesTheProgressLine) {
  ProgressDisplay display(/*columns=*/80);
  EXPECT_EQ(display.TellText("hello"), "hello\n");
  display.ProgressText("step 1", kStart);
  EXPECT_EQ(display.TellText("ps/0 died"), "\r\x1b[Kps/0 died\n");
}

// What is written to stderr next begins in the first column.
TEST(ProgressDisplayTest, AtTheEndTheProgressLineIsTakenAway) {
  ProgressDisplay display(/*columns=*/80);
  EXPECT_EQ(display.EndText(), "");
  display.ProgressText("step 9 of 9", kStart);
  EXPECT_EQ(display.EndText(), "\r\x1b[K");
  EXPECT_EQ(display.EndText(), "");
  ProgressDisplay file(/*columns=*/0);
  file.ProgressText("step 9 of 9", kStart);
  EXPECT_EQ(file.EndText(), "");
}

TEST(ProgressDisplayTest, FileGetsALineEveryFiveSeconds) {
  ProgressDisplay display(/*columns=*/0);
  EXPECT_EQ(display.ProgressText("step 1", kStart), "step 1\n");
  EXPECT_EQ(display.ProgressText("step 2", kStart + absl::Seconds(4)), "");
  EXPECT_EQ(display.ProgressText("step 3", kStart + absl::Seconds(5)),
            "step 3\n");
}

}  // namespace
}  // namespace parasol
