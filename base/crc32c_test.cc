#include "base/crc32c.h"

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(Crc32cTest, MatchesThePublishedVectors) {
  // RFC 3720, B.4, and the usual check value.
  EXPECT_EQ(Crc32cOf(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32cOf(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32cOf("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32cOf(""), 0u);
}

TEST(Crc32cTest, WithAndWithoutTheInstructionItIsTheSame) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes.push_back(static_cast<char>(i * 37 + 11));
    EXPECT_EQ(Crc32cOf(bytes), internal::ExtendCrc32cPortably(0, bytes));
  }
}

TEST(Crc32cTest, PiecesGiveTheSameAsTheWhole) {
  const absl::string_view whole = "The quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32cOf(whole.substr(0, cut)), whole.substr(cut)),
              Crc32cOf(whole));
  }
}

TEST(Crc32cTest, MaskingRotatesAndAddsTheConstant) {
  EXPECT_EQ(MaskCrc(0), 0xa282ead8u);
  EXPECT_EQ(MaskCrc(0x00008000u), 0xa282ead9u);
}

}  // namespace
}  // namespace parasol
