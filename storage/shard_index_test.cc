#include "storage/shard_index.h"

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "storage/row_entry.h"

namespace parasol {
namespace {

ShardIndex SomeIndex() {
  ShardIndex index;
  index.writer = {.shard = 2, .num_shards = 5};
  for (const char* variable : {"a", "b"}) {
    for (const int64_t first : {0, 65536}) {
      const ElementsKey key = {ArrayPrefix(variable, 1), first};
      EXPECT_OK(index.Add(key.Encode(), std::string(8 + 12, '\1')));
    }
  }
  std::string rows;
  const std::vector<uint64_t> ids = {4, 5};
  const std::vector<float> values(6);
  EXPECT_TRUE(EncodeRows({.ids = ids, .rows = values}, rows));
  EXPECT_OK(index.Add(RowsKey{TablePrefix("t"), 0}.Encode(), rows));
  EXPECT_OK(index.Add(DedupKey{2, 5, 77}.Encode(), "window"));
  EXPECT_OK(index.Add(kHeaderKey, kHeaderValue));
  return index;
}

TEST(ShardIndexTest, DecodingGivesWhatWasEncoded) {
  const ShardIndex index = SomeIndex();
  const auto decoded = ShardIndex::Decode(index.Encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->writer, index.writer);
  ASSERT_EQ(decoded->tables.size(), 1u);
  EXPECT_EQ(decoded->tables[0].prefix, TablePrefix("t"));
  EXPECT_EQ(decoded->tables[0].floats, 3u);
  ASSERT_EQ(decoded->extents.size(), 4u);
  EXPECT_EQ(decoded->extents[3].key.array_prefix, ArrayPrefix("b", 1));
  EXPECT_EQ(decoded->extents[3].key.first, 65536);
  EXPECT_EQ(decoded->extents[3].count, 3);
  EXPECT_EQ(decoded->extents[3].updates, 0x0101010101010101);
  EXPECT_EQ(decoded->Encode(), index.Encode());
}

TEST(ShardIndexTest, AnEmptyIndexOfAnUnknownWriterIsOne) {
  const auto decoded = ShardIndex::Decode(ShardIndex().Encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_FALSE(decoded->writer.has_value());
}

TEST(ShardIndexTest, TruncationsAndAlteredBytesDoNoHarm) {
  const std::string bytes = SomeIndex().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = ShardIndex::Decode(bytes.substr(0, size));
    EXPECT_LT(cut.value_or(ShardIndex()).extents.size(), 4u) << size;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string altered = bytes;
    altered[i] = '\xff';
    (void)ShardIndex::Decode(altered);
  }
  EXPECT_FALSE(ShardIndex::Decode(bytes + "x").has_value());
}

}  // namespace
}  // namespace parasol
