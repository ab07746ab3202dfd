#include "storage/tensor_files/sorted_table.h"

#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::SizeIs;

std::string FromTensorFlow(const std::string& name) {
  std::ifstream file("storage/tensor_files/testdata/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(SortedTableTest, TensorFlowsBytesAreWrittenAgainToTheBit) {
  for (const char* name :
       {"part.index", "lso_ckpt.index", "keras_legacy.index"}) {
    const std::string bytes = FromTensorFlow(name);
    ASSERT_OK_AND_ASSIGN(const auto entries, DecodeSortedTable(bytes));
    EXPECT_EQ(EncodeSortedTable(entries), bytes) << name;
  }
}

TEST(SortedTableTest, CompressedBlocksAreRead) {
  ASSERT_OK_AND_ASSIGN(const auto entries,
                       DecodeSortedTable(FromTensorFlow("snappy.index")));
  EXPECT_THAT(entries, SizeIs(6));
  EXPECT_TRUE(entries.contains("a"));
}

TEST(SortedTableTest, ManyBlocksComeBack) {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < 1000; ++i) {
    entries[absl::StrCat("layer_", i, "/kernel")] = std::string(i % 50, 'v');
  }
  entries["\xff\xff"] = "last";
  for (const size_t block_bytes : {size_t{1}, size_t{100}, size_t{1} << 20}) {
    EXPECT_THAT(DecodeSortedTable(EncodeSortedTable(entries, block_bytes)),
                IsOkAndHolds(entries));
  }
}

TEST(SortedTableTest, NoEntriesAreATable) {
  EXPECT_THAT(DecodeSortedTable(EncodeSortedTable({})),
              IsOkAndHolds(SizeIs(0)));
}

TEST(SortedTableTest, EveryAlteredOrMissingByteIsFoundOrHarmless) {
  const std::string table =
      EncodeSortedTable({{"", "header"}, {"a", "1"}, {"ab", "2"}}, 4);
  ASSERT_OK_AND_ASSIGN(const auto entries, DecodeSortedTable(table));
  int found = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string altered = table;
    altered[i] = static_cast<char>(altered[i] ^ 0x41);
    const auto decoded = DecodeSortedTable(altered);
    if (decoded.ok()) {
      EXPECT_EQ(*decoded, entries) << "byte " << i;
    } else {
      EXPECT_THAT(decoded.status(), StatusIs(absl::StatusCode::kDataLoss));
      ++found;
    }
    EXPECT_THAT(DecodeSortedTable(table.substr(0, i)),
                StatusIs(absl::StatusCode::kDataLoss));
  }
  // The padding of the footer and the metaindex are read by nobody.
  EXPECT_GT(found, static_cast<int>(table.size()) - 70);
}

}  // namespace
}  // namespace parasol
