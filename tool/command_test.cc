#include "tool/command.h"

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

std::vector<Command> TwoCommands() {
  return {{.name = "inspect", .summary = "looks"},
          {.name = "diff", .summary = "compares"}};
}

TEST(CommandTest, FirstArgumentNamesTheCommand) {
  const std::vector<Command> commands = TwoCommands();
  EXPECT_EQ(FindCommand(commands, {"diff", "inspect"}), &commands[1]);
  EXPECT_EQ(FindCommand(commands, {"--json", "diff"}), nullptr);
  EXPECT_EQ(FindCommand(commands, {}), nullptr);
}

TEST(CommandTest, UnknownCommandsHaveTheNearestOneInTheirError) {
  EXPECT_THAT(UnknownCommand(TwoCommands(), "inspct"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unknown command inspct (did you mean inspect?); try "
                       "parasol --help"));
  EXPECT_THAT(UnknownCommand(TwoCommands(), "train"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unknown command train; try parasol --help"));
}

TEST(CommandTest, UsageNamesEveryCommandWithItsSummary) {
  const std::string usage = ToolUsage(TwoCommands());
  EXPECT_THAT(usage, HasSubstr("  inspect: looks\n"));
  EXPECT_THAT(usage, HasSubstr("  diff: compares\n"));
}

TEST(CommandTest, MissingAndSurplusArgumentsAreNamed) {
  EXPECT_OK(RequireArguments({"a", "b"}, 2, "A or B"));
  EXPECT_THAT(RequireArguments({"a"}, 2, "A or B"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "A or B is missing; try --help"));
  EXPECT_THAT(RequireArguments({"a", "b", "c"}, 2, "A or B"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "unexpected argument c; try --help"));
}

}  // namespace
}  // namespace parasol
