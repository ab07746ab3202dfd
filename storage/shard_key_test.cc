#include "storage/shard_key.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAreArray;

const std::string kNul(1, '\0');

std::string ElementsKeyOf(const std::string& variable, int array,
                          int64_t first) {
  return ElementsKey{ArrayPrefix(variable, array), first}.Encode();
}

TEST(ShardKeyTest, KeysSortByKindThenName) {
  const std::vector<std::string> ascending = {
      std::string(kHeaderKey),
      ElementsKeyOf("", 0, 0),
      ElementsKeyOf(kNul, 0, 0),
      ElementsKeyOf(kNul + kNul, 0, 0),
      ElementsKeyOf(kNul + "\x01", 0, 0),
      ElementsKeyOf("\x01", 0, 0),
      ElementsKeyOf("a", 0, 0),
      ElementsKeyOf("a", 0, 255),
      ElementsKeyOf("a", 0, 256),
      ElementsKeyOf("a", 0, int64_t{1} << 40),
      ElementsKeyOf("a", 1, 0),
      ElementsKeyOf("a", 255, 0),
      ElementsKeyOf("a" + kNul, 0, 0),
      ElementsKeyOf("a" + kNul + "b", 0, 0),
      ElementsKeyOf("a/b", 0, 0),
      ElementsKeyOf("aa", 0, 0),
      ElementsKeyOf("\xff", 0, 0),
      RowsKey{TablePrefix(""), 0}.Encode(),
      RowsKey{TablePrefix("a"), 0}.Encode(),
      RowsKey{TablePrefix("a"), 256}.Encode(),
      RowsKey{TablePrefix("aa"), 0}.Encode(),
      DedupKey{0, 2, 9}.Encode(),
      DedupKey{1, 2, 1}.Encode(),
      DedupKey{1, 2, uint64_t{1} << 63}.Encode(),
  };
  std::vector<std::string> sorted = ascending;
  std::sort(sorted.begin(), sorted.end());

  EXPECT_THAT(sorted, ElementsAreArray(ascending));
}

TEST(ShardKeyTest, ParsingGivesWhatWasEncoded) {
  for (const std::string& name :
       {std::string(), std::string("dense/kernel"), "a" + kNul + "b" + kNul,
        std::string("\xff")}) {
    const auto key = ParseElementsKey(ElementsKeyOf(name, 7, 65536));
    ASSERT_TRUE(key.has_value());
    EXPECT_EQ(key->array_prefix, ArrayPrefix(name, 7));
    EXPECT_EQ(key->first, 65536);
  }
  const auto rows =
      ParseRowsKey(RowsKey{TablePrefix("a" + kNul), 1u << 31}.Encode());
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->table_prefix, TablePrefix("a" + kNul));
  EXPECT_EQ(rows->batch, 1u << 31);
  const auto dedup = ParseDedupKey(DedupKey{3, 4, 0x8000000000000005}.Encode());
  ASSERT_TRUE(dedup.has_value());
  EXPECT_EQ(dedup->shard, 3u);
  EXPECT_EQ(dedup->num_shards, 4u);
  EXPECT_EQ(dedup->worker_incarnation, 0x8000000000000005u);
}

TEST(ShardKeyTest, KeysThatAreCutOrTooLongAreRefused) {
  for (const std::string& whole :
       {ElementsKeyOf("a" + kNul + "b", 0, 5), DedupKey{1, 2, 3}.Encode()}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(ParseElementsKey(whole.substr(0, size)).has_value());
      EXPECT_FALSE(ParseDedupKey(whole.substr(0, size)).has_value());
    }
    EXPECT_FALSE(ParseElementsKey(whole + "x").has_value());
    EXPECT_FALSE(ParseDedupKey(whole + "x").has_value());
  }
}

TEST(ShardKeyTest, AnElementBeyondInt64IsRefused) {
  EXPECT_FALSE(ParseElementsKey(ElementsKeyOf("a", 0, -1)).has_value());
}

TEST(ShardKeyTest, AnEscapeThatIsNoneIsRefused) {
  const std::string eight(8, '\0');
  EXPECT_FALSE(
      ParseElementsKey("ea" + kNul + "\x02" + kNul + "\x01" + kNul + eight)
          .has_value());
}

}  // namespace
}  // namespace parasol
