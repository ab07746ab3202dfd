#include "cluster/trust/mutual_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cstdint>

#include "base/log.h"

namespace parasol {

std::string DrawNonce() {
  std::string nonce(kNonceBytes, '\0');
  // So few bytes come whole, and from a generator that is ready.
  CHECK_EQ(getrandom(nonce.data(), nonce.size(), 0),
           static_cast<ssize_t>(nonce.size()));
  return nonce;
}

std::string ProofOf(absl::string_view secret, ProofSide side,
                    absl::string_view hello, absl::string_view answer_nonce) {
  std::string text(1, static_cast<char>(side));
  const uint64_t hello_bytes = hello.size();
  text.append(reinterpret_cast<const char*>(&hello_bytes), sizeof(hello_bytes));
  text.append(hello.data(), hello.size());
  text.append(answer_nonce.data(), answer_nonce.size());
  std::string proof(kProofBytes, '\0');
  unsigned int bytes = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(proof.data()), &bytes);
  CHECK(made != nullptr && bytes == kProofBytes) << "OpenSSL has no HMAC";
  return proof;
}

bool IsProof(absl::string_view proof, absl::string_view secret, ProofSide side,
             absl::string_view hello, absl::string_view answer_nonce) {
  const std::string right = ProofOf(secret, side, hello, answer_nonce);
  return proof.size() == right.size() &&
         CRYPTO_memcmp(proof.data(), right.data(), right.size()) == 0;
}

}  // namespace parasol
