#include "storage/tensor_files/slice_key.h"

#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// A range of an axis; no length: the whole axis.
struct Range {
  int64_t start = 0;
  std::optional<int64_t> length = std::nullopt;
};

std::string HexKey(const std::string& tensor, const std::vector<Range>& axes) {
  tensor_bundle::TensorSliceProto slice;
  for (const Range& axis : axes) {
    auto& extent = *slice.add_extent();
    extent.set_start(axis.start);
    if (axis.length) extent.set_length(*axis.length);
  }
  return absl::BytesToHexString(SliceKey(tensor, slice));
}

// Bytes that TensorFlow wrote.
TEST(SliceKeyTest, IsTensorFlows) {
  EXPECT_EQ(HexKey("w", {{0, 3}, {0, 4}}), "00770001010280838084");
  EXPECT_EQ(HexKey("w", {{3, 3}, {0, 4}}), "00770001010283838084");
  EXPECT_EQ(HexKey("foo", {{}, {}, {1, 3}, {4, 5}}),
            "00666f6f00010104807f807f81838485");
}

// Numbers worked out by hand from the form of OrderedCode.
TEST(SliceKeyTest, LargeNumbersHaveMoreBytes) {
  EXPECT_EQ(HexKey("", {{63, 64}}), "0000010101bfc040");
  EXPECT_EQ(HexKey("", {{8191, 8192}}), "0000010101dfffe02000");
  EXPECT_EQ(HexKey("", {{0, int64_t{1} << 62}}),
            "000001010180ffc04000000000000000");
}

TEST(SliceKeyTest, KeysSortAsTheirNumbersDo) {
  std::string last;
  for (const int64_t start : {0, 1, 63, 64, 8191, 8192, 1 << 20, 1 << 30}) {
    const std::string key = HexKey("w", {{start, 1}});
    EXPECT_LT(last, key) << start;
    last = key;
  }
}

TEST(SliceKeyTest, ZeroAndFfInNamesAreEscaped) {
  EXPECT_EQ(HexKey(std::string("a\0b\xff", 4), {}), "006100ff62ff00000100");
}

}  // namespace
}  // namespace parasol
