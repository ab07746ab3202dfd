#include "deploy/resolver/hosts.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
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

TEST(HostsTest, AHostHasOneSlotUnlessANumberStandsBehindIt) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Host> hosts,
      ParseHosts("a,b-1.example:2, 10.0.0.1,[::1],[fe80::2]:3"));
  EXPECT_THAT(hosts, ElementsAre(Host{"a", 1}, Host{"b-1.example", 2},
                                 Host{"10.0.0.1", 1}, Host{"[::1]", 1},
                                 Host{"[fe80::2]", 3}));
}

TEST(HostsTest, AHostThatIsThereTwiceHasTheSumAtItsFirstPlace) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Host> hosts, ParseHosts("a,b,a:3"));
  EXPECT_THAT(hosts, ElementsAre(Host{"a", 4}, Host{"b", 1}));
}

TEST(HostsTest, WhatIsNoHostIsRefusedAndQuoted) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "\"\" is not a host"},
      {"a,,b", "\"\" is not a host"},
      {"a b", "\"a b\" is not a host"},
      {"-oProxyCommand=x", "is not a host"},
      {"a;rm", "\"a;rm\" is not a host"},
      {"::1", "\"\" is not a host"},
      {"[::1", "is not a host"},
      {"[]", "is not a host"},
      {"a:", "\"\" is not a number of processes on \"a\""},
      {"a:0", "\"0\" is not a number"},
      {"a:-1", "\"-1\" is not a number"},
      {"a:1:2", "\"1:2\" is not a number"},
      {"a:99999999999999999999", "is not a number"},
      {"a:65536,b", "not a port"}};
  for (const auto& [list, words] : cases) {
    SCOPED_TRACE(list);
    EXPECT_THAT(ParseHosts(list), IsRefusedWith(words));
  }
  EXPECT_THAT(ParseHosts("a\nb"), IsRefusedWith("\"a\\nb\" is not a host"));
}

TEST(HostsTest, HostfilesHaveSlotsAndComments) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Host> hosts,
                       ParseHostfile("# my machines\n"
                                     "a slots=2 max_slots=4\n"
                                     "\n"
                                     "\tb\t# one\r\n"
                                     "c slots = 3\n"
                                     "a\n"));
  EXPECT_THAT(hosts, ElementsAre(Host{"a", 3}, Host{"b", 1}, Host{"c", 3}));
}

TEST(HostsTest, ALineOfAHostfileThatIsWrongIsNumbered) {
  EXPECT_THAT(ParseHostfile("a\nb slots=x\n"),
              IsRefusedWith("line 2: \"x\" is not a number"));
  EXPECT_THAT(ParseHostfile("a cores=2"),
              IsRefusedWith("line 1: \"cores=2\" is neither slots=N"));
  EXPECT_THAT(ParseHostfile("a slots"), IsRefusedWith("line 1: \"\" is not"));
  EXPECT_THAT(ParseHostfile(std::string("a\0b", 3)),
              IsRefusedWith("line 1: \"a\\x00\\x62\" is not a host"));
}

TEST(HostsTest, LongTextIsCutWhereItIsQuoted) {
  EXPECT_THAT(Quoted(std::string(100000, 'x')), SizeIs(105));
}

}  // namespace
}  // namespace parasol
