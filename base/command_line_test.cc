#include "base/command_line.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(bool, eager, true, "Starts at once.");
ABSL_FLAG(int32_t, replicas, 2, "How many.");
ABSL_FLAG(std::string, data_dir, "", "Where the data are.");
ABSL_FLAG(absl::Duration, lease, absl::Seconds(10), "How long.");
ABSL_FLAG(parasol::RepeatedFlag, set, {}, "Changes a field.");

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandLineTest : public testing::Test {
 private:
  absl::FlagSaver saver_;
};

TEST_F(CommandLineTest, ValueFollowsEqualsSignOrIsTheNextWord) {
  EXPECT_OK(ParseFlags({"--replicas=3", "--data_dir", "/data", "-lease=2s"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_replicas), 3);
  EXPECT_EQ(absl::GetFlag(FLAGS_data_dir), "/data");
  EXPECT_EQ(absl::GetFlag(FLAGS_lease), absl::Seconds(2));
}

TEST_F(CommandLineTest, BoolNeedsNoValueAndTakesNoNextWord) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       ParseFlags({"--noeager", "true"}));
  EXPECT_FALSE(absl::GetFlag(FLAGS_eager));
  EXPECT_THAT(line.positional, ElementsAre("true"));
  EXPECT_OK(ParseFlags({"--eager"}));
  EXPECT_TRUE(absl::GetFlag(FLAGS_eager));
  EXPECT_OK(ParseFlags({"--eager=false"}));
  EXPECT_FALSE(absl::GetFlag(FLAGS_eager));
}

TEST_F(CommandLineTest, LastOfTwoValuesStays) {
  EXPECT_OK(ParseFlags({"--replicas=3", "--replicas=4"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_replicas), 4);
}

TEST_F(CommandLineTest, RepeatedFlagKeepsAllValuesInOrder) {
  EXPECT_OK(ParseFlags({"--set=a.b=1", "--set", "c=x y", "--set="}));
  EXPECT_THAT(absl::GetFlag(FLAGS_set).values,
              ElementsAre("a.b=1", "c=x y", ""));
}

TEST_F(CommandLineTest, RepeatedFlagIsEmptyByDefault) {
  EXPECT_THAT(absl::GetFlag(FLAGS_set).values, IsEmpty());
}

TEST_F(CommandLineTest, EverythingAfterTwoDashesIsPositional) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       ParseFlags({"a", "-", "--", "--replicas=9", "--"}));
  EXPECT_THAT(line.positional, ElementsAre("a", "-", "--replicas=9", "--"));
  EXPECT_EQ(absl::GetFlag(FLAGS_replicas), 2);
}

TEST_F(CommandLineTest, HelpAndVersionAreNoted) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       ParseFlags({"--help", "-version"}));
  EXPECT_TRUE(line.help);
  EXPECT_TRUE(line.version);
}

TEST_F(CommandLineTest, ErrorNamesFlagAndValue) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const Case cases[] = {
      {{"--replica=3"}, "unknown flag --replica (did you mean --replicas?)"},
      {{"--noreplicas"},
       "unknown flag --noreplicas (did you mean --replicas?)"},
      {{"--replicas"}, "--replicas needs a value"},
      {{"--replicas=many"},
       "--replicas=many: not an integer in the range of the flag"},
      {{"--eager=perhaps"}, "--eager=perhaps: write true or false"},
      {{"--lease=5"},
       "--lease=5: a time needs a unit; write --lease=5s for seconds"},
      {{"--lease=soon"}, "--lease=soon: not a time; write 5s, 10m or 1h30m"},
      {{"--lease=-5s"}, "--lease=-5s: below 0; write a time such as 5s"},
      {{"--lease", "-inf"}, "--lease=-inf: below 0; write a time such as 5s"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(ParseFlags(c.arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, c.message));
  }
}

TEST_F(CommandLineTest, HelpShowsUsageAndFlagsWithDefaults) {
  EXPECT_THAT(
      HelpText("Runs a task."),
      AllOf(HasSubstr("Runs a task.\n\nFlags:\n"),
            HasSubstr("  --data_dir\n      Where the data are.\n"),
            HasSubstr("  --[no]eager  (default: true)\n      Starts at once."),
            HasSubstr("  --lease  (default: 10s)\n"), HasSubstr("  --help\n"),
            Not(HasSubstr("flagfile"))));
}

TEST_F(CommandLineTest, CommandHasNoFlagsButItsOwn) {
  EXPECT_OK(ParseFlags({"--replicas=3", "--noeager"}, {"replicas", "eager"}));
  EXPECT_THAT(
      ParseFlags({"--data_dir=/x"}, {"replicas"}),
      StatusIs(absl::StatusCode::kInvalidArgument, "unknown flag --data_dir"));
  EXPECT_THAT(
      ParseFlags({"--noeager"}, {"replicas"}),
      StatusIs(absl::StatusCode::kInvalidArgument, "unknown flag --noeager"));
  EXPECT_THAT(HelpText("Does one thing.", {"replicas"}),
              AllOf(HasSubstr("--replicas"), Not(HasSubstr("--data_dir"))));
}

TEST_F(CommandLineTest, LongLinesBreakBetweenWordsAndKeepTheirIndent) {
  EXPECT_EQ(WrapText("one two three\n  four five six\n\nend", 1, 12),
            " one two\n three\n   four five\n   six\n\n end\n");
}

}  // namespace
}  // namespace parasol
