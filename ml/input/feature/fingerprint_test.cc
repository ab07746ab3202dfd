#include "ml/input/feature/fingerprint.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

// Literals: a checkpoint's rows are found by them.
TEST(FingerprintTest, IsTheSameOnEveryMachineAndInEveryVersion) {
  EXPECT_EQ(Fingerprint().Get(), 0xefd01f60ba992926u);
  EXPECT_EQ(Fingerprint().AddPart("city").AddPart("Oslo").Get(),
            0x17c6e8b13da1cec5u);
  EXPECT_EQ(Fingerprint().AddPart("C1").AddPart("68fd1e64").Get(),
            0x7bc33f7a3c5925dau);
}

TEST(FingerprintTest, PartsDoNotRunIntoEachOther) {
  EXPECT_NE(Fingerprint().AddPart("ab").AddPart("c").Get(),
            Fingerprint().AddPart("a").AddPart("bc").Get());
  EXPECT_NE(Fingerprint().AddPart("a").Get(),
            Fingerprint().AddPart("a").AddPart("").Get());
}

}  // namespace
}  // namespace parasol
