#include "cluster/trust/mutual_proof.h"

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(MutualProofTest, ProofIsGoodForItsSecretSideAndConnectionAlone) {
  const std::string nonce = DrawNonce();
  const std::string proof =
      ProofOf("secret", ProofSide::kOpener, "hello", nonce);
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(IsProof(proof, "secret", ProofSide::kOpener, "hello", nonce));
  EXPECT_FALSE(IsProof(proof, "secrets", ProofSide::kOpener, "hello", nonce));
  EXPECT_FALSE(IsProof(proof, "secret", ProofSide::kAnswerer, "hello", nonce));
  EXPECT_FALSE(IsProof(proof, "secret", ProofSide::kOpener, "hallo", nonce));
  EXPECT_FALSE(
      IsProof(proof, "secret", ProofSide::kOpener, "hello", DrawNonce()));
  EXPECT_FALSE(IsProof(proof, "secret", ProofSide::kOpener,
                       absl::StrCat("hello", nonce.substr(0, 1)),
                       nonce.substr(1)));
}

TEST(MutualProofTest, AnyOtherBytesAreNoProof) {
  const std::string nonce(kNonceBytes, 'n');
  const std::string proof =
      ProofOf("secret", ProofSide::kOpener, "hello", nonce);
  for (size_t i = 0; i < proof.size(); ++i) {
    std::string other = proof;
    other[i] ^= 1;
    EXPECT_FALSE(IsProof(other, "secret", ProofSide::kOpener, "hello", nonce));
    EXPECT_FALSE(IsProof(proof.substr(0, i), "secret", ProofSide::kOpener,
                         "hello", nonce));
  }
}

// Computed by Python's hmac: both ends may be of other builds.
TEST(MutualProofTest, ProofIsAnHmacOfSideHelloAndNonce) {
  EXPECT_EQ(absl::BytesToHexString(ProofOf("key", ProofSide::kAnswerer, "hello",
                                           "0123456789abcdef")),
            "866eac8de3e987fde960d6321e43969229147bd9aa4efaeec2c18e7d1f6051e7");
}

TEST(MutualProofTest, NoncesDiffer) {
  EXPECT_EQ(DrawNonce().size(), kNonceBytes);
  EXPECT_NE(DrawNonce(), DrawNonce());
}

}  // namespace
}  // namespace parasol
