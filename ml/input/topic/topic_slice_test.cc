#include "ml/input/topic/topic_slice.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TopicSliceTest, ANameSaysAll) {
  const TopicSlice slice = {"my.clicks", 12, {{0, 100, 200}, {3, 80, 80}}};
  EXPECT_EQ(slice.Name(), "my.clicks/000000000012@0:100-200,3:80");
  EXPECT_EQ(slice.offsets(), 100);
  ASSERT_OK_AND_ASSIGN(const TopicSlice parsed,
                       ParseSlice(slice.Name(), "my.clicks"));
  EXPECT_EQ(parsed.number, 12);
  EXPECT_EQ(parsed.ranges, slice.ranges);
}

TEST(TopicSliceTest, NamesAscend) {
  TopicSlice a = {"t", 9, {{0, 5, 9}}};
  TopicSlice b = {"t", 10, {{0, 9, 10}}};
  EXPECT_LT(a.Name(), b.Name());
}

TEST(TopicSliceTest, AHostileNameIsNoSlice) {
  const std::string many = "0:0-16777216,1:0-1";
  std::string partitions = "0:1";
  for (int i = 1; i <= 256; ++i) absl::StrAppend(&partitions, ",", i, ":1");
  for (const std::string& rest :
       {std::string(""),
        std::string("/"),
        std::string("/000000000012"),
        std::string("/000000000012@"),
        std::string("/12@0:1-2"),
        std::string("/-00000000012@0:1-2"),
        std::string("/000000000012@0:2-1"),
        std::string("/000000000012@0:1-1"),
        std::string("/000000000012@0:-1-1"),
        std::string("/000000000012@0:1-2-3"),
        std::string("/000000000012@0:1:2"),
        std::string("/000000000012@1:1-2,0:1-2"),
        std::string("/000000000012@1:1-2,1:2-3"),
        std::string("/000000000012@2147483648:1-2"),
        std::string("/000000000012@0:1-9223372036854775807"),
        std::string("/000000000012@0:1-92233720368547758070"),
        std::string("/000000000012@0:1-2,"),
        std::string("/000000000012@0:+1"),
        std::string("/000000000012@0: 1"),
        std::string("2/000000000012@0:1-2"),
        absl::StrCat("/000000000012@", many),
        absl::StrCat("/000000000012@", partitions)}) {
    SCOPED_TRACE(rest);
    EXPECT_THAT(ParseSlice("t" + rest, "t"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is no slice of the topic t")));
  }
  EXPECT_FALSE(ParseSlice("u/000000000012@0:1-2", "t").ok());
}

TEST(TopicSliceTest, TheFirstSliceBeginsAtTheOldestOffsets) {
  const SliceCut cut = NextSlice("t", std::nullopt,
                                 {{0, 7, 15}, {1, 0, 4}, {2, 3, 3}}, 4, false);
  ASSERT_TRUE(cut.slice);
  EXPECT_EQ(cut.slice->Name(), "t/000000000000@0:7-15,1:0-4,2:3");
  EXPECT_EQ(cut.left, 0);
  EXPECT_EQ(cut.deleted, 0);
  EXPECT_THAT(cut.trouble, IsEmpty());
}

TEST(TopicSliceTest, ASliceHasWholeBatchesUntilTheRestIsTaken) {
  const TopicSlice last = {"t", 3, {{0, 5, 10}}};
  EXPECT_FALSE(NextSlice("t", last, {{0, 0, 13}}, 4, false).slice);
  EXPECT_EQ(NextSlice("t", last, {{0, 0, 13}}, 4, false).left, 3);
  EXPECT_EQ(NextSlice("t", last, {{0, 0, 13}}, 4, true).slice->Name(),
            "t/000000000004@0:10-13");
  const SliceCut cut = NextSlice("t", last, {{0, 0, 19}}, 4, true);
  EXPECT_EQ(cut.slice->Name(), "t/000000000004@0:10-18");
  EXPECT_EQ(cut.left, 1);
  EXPECT_FALSE(NextSlice("t", last, {{0, 0, 10}}, 4, true).slice);
}

TEST(TopicSliceTest, ANewPartitionBeginsAtItsOldestOffset) {
  const TopicSlice last = {"t", 0, {{0, 0, 10}}};
  EXPECT_EQ(
      NextSlice("t", last, {{0, 0, 10}, {1, 2, 6}}, 4, false).slice->Name(),
      "t/000000000001@0:10,1:2-6");
}

TEST(TopicSliceTest, APartitionThatIsNotNamedStaysWhereItWas) {
  const TopicSlice last = {"t", 0, {{0, 0, 10}, {1, 0, 5}}};
  EXPECT_EQ(NextSlice("t", last, {{1, 0, 9}}, 4, false).slice->Name(),
            "t/000000000001@0:10,1:5-9");
}

TEST(TopicSliceTest, DeletedOffsetsArePassedOverAndNamed) {
  const TopicSlice last = {"t", 0, {{0, 0, 10}}};
  const SliceCut cut = NextSlice("t", last, {{0, 30, 34}}, 4, false);
  EXPECT_EQ(cut.slice->Name(), "t/000000000001@0:30-34");
  EXPECT_EQ(cut.deleted, 20);
  EXPECT_THAT(cut.deleted_why,
              HasSubstr("t partition 0: the offsets 10 to 29"));
  // Until something is taken they are not counted.
  const SliceCut later = NextSlice("t", last, {{0, 30, 30}}, 4, true);
  EXPECT_FALSE(later.slice);
  EXPECT_EQ(later.deleted, 0);
}

TEST(TopicSliceTest, APartitionThatHasBecomeShorterIsNotReadAgain) {
  const TopicSlice last = {"t", 0, {{0, 0, 10}, {1, 0, 4}}};
  const SliceCut cut = NextSlice("t", last, {{0, 0, 3}, {1, 0, 8}}, 4, false);
  EXPECT_EQ(cut.slice->Name(), "t/000000000001@0:10,1:4-8");
  EXPECT_THAT(cut.trouble, AllOf(HasSubstr("t partition 0 ends at offset 3"),
                                 HasSubstr("up to 10")));
}

TEST(TopicSliceTest, PartitionsShareALargeSlice) {
  const SliceCut cut =
      NextSlice("t", std::nullopt,
                {{0, 0, 1 << 20}, {1, 0, 100}, {2, 0, 1 << 20}}, 1000, false);
  EXPECT_EQ(cut.slice->offsets(), 65000);
  EXPECT_EQ(cut.slice->Name(), "t/000000000000@0:0-32450,1:0-100,2:0-32450");
  EXPECT_EQ(cut.left, (2 << 20) + 100 - 65000);
}

TEST(TopicSliceTest, ABatchMayBeLargerThanASlice) {
  EXPECT_EQ(NextSlice("t", std::nullopt, {{0, 0, 1 << 20}}, 100000, false)
                .slice->offsets(),
            100000);
}

// Whatever grows and is deleted: slices of a topic cover each offset once, but
// for those that are named as deleted.
TEST(TopicSliceTest, SlicesCoverEachOffsetOnce) {
  std::mt19937 random(17);  // NOLINT
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<PartitionOffsets> now = {{0, below(50), 0}};
    now[0].high = now[0].low;
    std::map<int32_t, int64_t> begins;  // where its first slice begins
    std::optional<TopicSlice> last;
    int64_t taken = 0;
    int64_t deleted = 0;
    const int64_t batch = 1 + below(40);
    for (int look = 0; look < 60; ++look) {
      if (below(20) == 0) {
        const auto partition = static_cast<int32_t>(now.size());
        now.push_back({partition, 0, 0});
      }
      for (PartitionOffsets& each : now) {
        each.high += below(3) == 0 ? below(3000) : below(30);
        if (last && below(10) == 0) {
          each.low += below(each.high - each.low + 1);
        }
      }
      const bool is_last = look >= 50;
      const SliceCut cut = NextSlice("t", last, now, batch, is_last);
      deleted += cut.deleted;
      if (!cut.slice) continue;
      ASSERT_OK_AND_ASSIGN(const TopicSlice slice,
                           ParseSlice(cut.slice->Name(), "t"));
      if (last) {
        ASSERT_GT(slice.Name(), last->Name());
      }
      ASSERT_GT(slice.offsets(), 0);
      for (const OffsetRange& range : slice.ranges) {
        begins.try_emplace(range.partition, range.begin);
        int64_t before = begins.at(range.partition);
        for (const OffsetRange& old :
             last ? last->ranges : std::vector<OffsetRange>()) {
          if (old.partition == range.partition) before = old.end;
        }
        ASSERT_GE(range.begin, before);
      }
      taken += slice.offsets();
      last = slice;
    }
    int64_t all = 0;
    for (const OffsetRange& range : last->ranges) {
      all += range.end - begins.at(range.partition);
    }
    EXPECT_EQ(taken + deleted, all) << "round " << round;
  }
}

}  // namespace
}  // namespace parasol
