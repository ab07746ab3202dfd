#include "cluster/trust/job_token.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <fstream>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Makes another program with the same secret have other keys.
constexpr absl::string_view kSalt = "parasol job token 1";
constexpr size_t kJobNameBytes = 4;

OSSL_PARAM BytesParam(const char* name, absl::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(
      name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

absl::StatusOr<JobToken> JobToken::Parse(absl::string_view text) {
  const absl::string_view secret = absl::StripAsciiWhitespace(text);
  if (secret.size() >= kMinBytes && secret.size() <= kMaxBytes) {
    return JobToken(secret);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a token has ", kMinBytes, " to ", kMaxBytes, " bytes, this one ",
      secret.size(), "; make one: head -c 32 /dev/urandom | base64"));
}

absl::StatusOr<JobToken> JobToken::Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes + 2, '\0');
  // A directory opens, but can't be read.
  if (!file || (file.read(text.data(), text.size()), file.bad())) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": can't be read; name a file that this process can read"));
  }
  text.resize(file.gcount());
  absl::StatusOr<JobToken> token = Parse(text);
  RETURN_IF_ERROR(token.status()) << path;
  return token;
}

std::string JobToken::Draw() {
  std::string bytes(32, '\0');
  CHECK_EQ(getrandom(bytes.data(), bytes.size(), 0),
           static_cast<ssize_t>(bytes.size()));
  return absl::BytesToHexString(bytes);
}

DerivedKey JobToken::Derive(absl::string_view purpose) const {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> algorithm(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(algorithm.get()), EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      BytesParam(OSSL_KDF_PARAM_KEY, secret_),
      BytesParam(OSSL_KDF_PARAM_SALT, kSalt),
      BytesParam(OSSL_KDF_PARAM_INFO, purpose), OSSL_PARAM_construct_end()};
  DerivedKey key;
  CHECK(context != nullptr &&
        EVP_KDF_derive(context.get(), key.data(), key.size(), parameters) == 1)
      << "OpenSSL has no HKDF";
  return key;
}

std::string JobToken::JobName() const {
  const DerivedKey key = Derive("name of the job");
  return absl::StrCat(
      "token-", absl::BytesToHexString(absl::string_view(
                    reinterpret_cast<const char*>(key.data()), kJobNameBytes)));
}

}  // namespace parasol
