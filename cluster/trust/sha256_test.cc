#include "cluster/trust/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

// FIPS 180-2, appendix B.
TEST(Sha256Test, DigestsAreTheStandards) {
  EXPECT_EQ(Sha256().Finish(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 whole;
  whole.Add("abc");
  EXPECT_EQ(whole.Finish(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesAreAsTheWhole) {
  Sha256 pieces;
  for (int i = 0; i < 1000; ++i) pieces.Add(std::string(1000, 'a'));
  EXPECT_EQ(pieces.Finish(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace parasol
