#include "deploy/resolver/slurm_expressions.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "deploy/resolver/hosts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

auto IsRefusedWith(const std::string& words) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
}

TEST(SlurmExpressionsTest, NodesKeepTheirOrderAndTheirZeros) {
  struct Case {
    std::string list;
    std::vector<std::string> nodes;
  };
  // The first is the example of TensorFlow's resolver.
  const Case cases[] = {
      {"n[1-2],m5,o[3-4,6,7-9]",
       {"n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"}},
      {"n1", {"n1"}},
      {"n[09-11]", {"n09", "n10", "n11"}},
      {"n[9-11]", {"n9", "n10", "n11"}},
      {"n[001-2]", {"n001", "n002"}},
      {"n[1-1]-ib.cluster", {"n1-ib.cluster"}},
      {"r[1-2]n[01-02]", {"r1n01", "r1n02", "r2n01", "r2n02"}},
      {"[1,3]", {"1", "3"}},
      {"n[999999999]", {"n999999999"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.list);
    EXPECT_THAT(ExpandNodeList(c.list), IsOkAndHolds(c.nodes));
  }
}

TEST(SlurmExpressionsTest, ListsThatAreNoNodesAreRefusedAndQuoted) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},
      {"a,,b", "is empty"},
      {"a,", "is empty"},
      {"n[1-2", "\"n[1-2\" has a bracket without its other end"},
      {"n1-2]", "bracket"},
      {"n[1-[2]]", "bracket"},
      {"a,n[1-2],m]", "\"m]\""},
      {"n[]", "\"n[]\": \"\" is not a range"},
      {"n[2-1]", "\"2-1\" is not a range"},
      {"n[1-]", "\"1-\" is not a range"},
      {"n[-1]", "\"-1\" is not a range"},
      {"n[1-2-3]", "is not a range"},
      {"n[a-b]", "is not a range"},
      {"n[+1-2]", "is not a range"},
      {"n[9999999999]", "is not a range"},
      {"n[18446744073709551616-18446744073709551617]", "is not a range"}};
  for (const auto& [list, words] : cases) {
    SCOPED_TRACE(list);
    EXPECT_THAT(ExpandNodeList(list), IsRefusedWith(words));
  }
  EXPECT_THAT(ExpandNodeList("n[1\n]"), IsRefusedWith("\"1\\n\""));
}

TEST(SlurmExpressionsTest, NoListMakesMoreNodesThanTheLimit) {
  EXPECT_THAT(ExpandNodeList("n[1-65536]"),
              IsOkAndHolds(SizeIs(kMaxProcesses)));
  std::string many_brackets;
  for (int i = 0; i < 100; ++i) many_brackets += "[0-9]";
  const std::string cases[] = {"n[1-65537]",       "n[0-999999999]",
                               "n[1-65536,1]",     "n[1-65536],m",
                               "n[1-257]m[1-256]", many_brackets};
  for (const std::string& list : cases) {
    SCOPED_TRACE(list);
    EXPECT_THAT(ExpandNodeList(list), IsRefusedWith("more than the 65536"));
  }
  EXPECT_THAT(ExpandNodeList(absl::StrCat(std::string(256, 'n'), "[1-65536]")),
              IsRefusedWith("names of more than 255 bytes"));
}

TEST(SlurmExpressionsTest, TasksPerNodeAreRepeated) {
  EXPECT_THAT(ExpandTasksPerNode("2(x3),1"),
              IsOkAndHolds(ElementsAre(2, 2, 2, 1)));
  EXPECT_THAT(ExpandTasksPerNode("4"), IsOkAndHolds(ElementsAre(4)));
  EXPECT_THAT(ExpandTasksPerNode("1(x65536)"),
              IsOkAndHolds(SizeIs(kMaxProcesses)));
}

TEST(SlurmExpressionsTest, NumbersThatAreNoTasksAreRefusedAndQuoted) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "\"\" is not a number"},
      {"2,", "\"\" is not a number"},
      {"0", "\"0\" is not a number"},
      {"-1", "is not a number"},
      {"2(x3", "\"2(x3\" is not a number"},
      {"2(3)", "is not a number"},
      {"2(x)", "is not a number"},
      {"2(x0)", "is not a number"},
      {"2(x3)4", "is not a number"},
      {"2(", "is not a number"},
      {"(x2)", "is not a number"},
      {"99999999999(x2)", "is not a number"},
      {"1(x65537)", "more than the 65536"},
      {"65536,1", "more than the 65536"},
      {"999999999(x999999999)", "more than the 65536"}};
  for (const auto& [list, words] : cases) {
    SCOPED_TRACE(list);
    EXPECT_THAT(ExpandTasksPerNode(list), IsRefusedWith(words));
  }
}

}  // namespace
}  // namespace parasol
