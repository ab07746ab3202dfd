#include "ml/input/topic/record_merge.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Records of these times, whose places are `first` and following.
std::vector<PlacedRecord> At(uint64_t first,
                             const std::vector<int64_t>& times) {
  std::vector<PlacedRecord> records;
  for (const int64_t time : times) records.push_back({time, first++, 1});
  return records;
}

std::vector<uint64_t> PlacesOf(const std::vector<PlacedRecord>& records) {
  std::vector<uint64_t> places;
  for (const PlacedRecord& record : records) places.push_back(record.begin);
  return places;
}

TEST(RecordMergeTest, TheOldestRecordIsNext) {
  EXPECT_THAT(PlacesOf(Merged({At(0, {1, 4, 5}), {}, At(10, {2, 3, 9})})),
              ElementsAre(0, 10, 11, 1, 2, 12));
  EXPECT_THAT(Merged({}), IsEmpty());
}

TEST(RecordMergeTest, APartitionKeepsItsOrderWhateverItsTimes) {
  EXPECT_THAT(PlacesOf(Merged({At(0, {7, 1, -1}), At(10, {5, 7})})),
              ElementsAre(10, 0, 1, 2, 11));
}

}  // namespace
}  // namespace parasol
