#include "cluster/trust/sha256.h"

#include <array>

#include "absl/strings/escaping.h"
#include "base/log.h"
#include "openssl/evp.h"

namespace parasol {

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr &&
        EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1)
      << "SHA-256";
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Add(absl::string_view bytes) {
  CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1)
      << "SHA-256";
}

std::string Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int bytes = 0;
  CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &bytes) == 1)
      << "SHA-256";
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), bytes));
}

}  // namespace parasol
