#include "chief/new_files.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

TEST(NewFiles, FilesBehindTheLastOneAreNewInTheirOrder) {
  NewFiles files("b");
  const Names there = {"a", "b", "c", "d"};
  EXPECT_THAT(files.Look(there, there).fresh, ElementsAre("c", "d"));
  files.Take("c");
  EXPECT_THAT(files.Look(there, there).fresh, ElementsAre("d"));
}

TEST(NewFiles, WhatTheFirstReadingLacksWaitsForTheNextLook) {
  NewFiles files("");
  EXPECT_THAT(files.Look({}, {"a"}).fresh, IsEmpty());
  // "c" came in front of "b" in the first reading; "b" was there before "c".
  EXPECT_THAT(files.Look({"a", "c"}, {"a", "b", "c", "d"}).fresh,
              ElementsAre("a", "b", "c"));
}

TEST(NewFiles, AFileThatComesLateIsNamedOnce) {
  NewFiles files("m");
  EXPECT_THAT(files.Look({"a", "m"}, {"a", "m"}).late, IsEmpty())
      << "what a chief finds when it begins may be trained";
  EXPECT_THAT(files.Look({"a", "m"}, {"a", "f", "m"}).late, ElementsAre("f"));
  EXPECT_THAT(files.Look({"a", "f", "m"}, {"a", "f", "m"}).late, IsEmpty());
}

TEST(NewFiles, TheNextChiefKnowsWhichFilesCameLate) {
  NewFiles files("m", {"c", "e", "m"});
  const Names there = {"a", "b", "c", "d", "e", "f", "m", "n"};
  const auto found = files.Look(there, there);
  EXPECT_THAT(found.late, ElementsAre("d", "f"))
      << "what is older may have been taken";
  EXPECT_THAT(found.fresh, ElementsAre("n"));
  EXPECT_THAT(files.Look(there, there).late, IsEmpty());
  Names more = there;
  more.insert(more.begin(), "0");
  EXPECT_THAT(files.Look(more, more).late, ElementsAre("0"));
}

TEST(NewFiles, WhoKnowsAllThatWereTakenKnowsEachLateOne) {
  NewFiles files("m", {"c", "m"}, /*are_all=*/true);
  const Names there = {"a", "c", "e", "m", "n"};
  EXPECT_THAT(files.Look(there, there).late, ElementsAre("a", "e"));
  EXPECT_THAT(files.Look(there, there).late, IsEmpty());
}

// A log's last line was cut off.
TEST(NewFiles, TheLastFileIsNotLateThoughNobodyListsIt) {
  NewFiles files("m", {"c", "e"}, /*are_all=*/true);
  EXPECT_THAT(files.Look({"c", "e", "m"}, {"c", "e", "m"}).late, IsEmpty());
}

TEST(NewFiles, AFileThatWasTakenIsNotLate) {
  NewFiles files("");
  EXPECT_THAT(files.Look({"a", "b"}, {"a", "b"}).fresh, ElementsAre("a", "b"));
  files.Take("a");
  files.Take("b");
  const auto found = files.Look({"a", "b"}, {"a", "b"});
  EXPECT_THAT(found.late, IsEmpty());
  EXPECT_THAT(found.fresh, IsEmpty());
}

// A writer that gives files their names in order, and a folder that shows each
// file that comes while it is read, or not.
TEST(NewFiles, NoFileIsLeftOutWhileAFolderIsRead) {
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    int written = 0;
    int taken = 0;
    NewFiles files("");
    const auto read = [&] {
      Names names;
      const int before = written;
      written += random() % 4;
      for (int i = 1; i <= written; ++i) {
        if (i <= before || random() % 2 == 0) {
          names.push_back(absl::StrFormat("%04d", i));
        }
      }
      return names;
    };
    for (int look = 0; look < 30; ++look) {
      const Names first = read();
      written += random() % 3;
      const auto found = files.Look(first, read());
      ASSERT_THAT(found.late, IsEmpty());
      const size_t room = random() % (found.fresh.size() + 1);
      for (size_t i = 0; i < room; ++i) {
        ASSERT_EQ(found.fresh[i], absl::StrFormat("%04d", ++taken)) << seed;
        files.Take(found.fresh[i]);
      }
    }
  }
}

}  // namespace
}  // namespace parasol
