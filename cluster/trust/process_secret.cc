#include "cluster/trust/process_secret.h"

#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "openssl/crypto.h"
#include "openssl/evp.h"
#include "openssl/hmac.h"

namespace parasol {
namespace {

constexpr size_t kDigestBytes = 32;
// Longest admission that is looked at; those that are made are shorter.
constexpr size_t kMaxAdmission = 160;

// Returns HMAC-SHA256 of `text`, with the number as the key.
std::array<unsigned char, kDigestBytes> Digest(uint64_t key,
                                               absl::string_view text) {
  std::array<unsigned char, kDigestBytes> digest;
  unsigned int bytes = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), &key, sizeof(key),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           digest.data(), &bytes);
  CHECK(made != nullptr && bytes == kDigestBytes) << "HMAC-SHA256";
  return digest;
}

std::string NameOf(const AdmittedWorker& worker) {
  return absl::StrCat("worker.", worker.index, ".", worker.incarnation);
}

}  // namespace

uint64_t PublicNumber(uint64_t ps_incarnation) {
  uint64_t number;
  std::memcpy(&number, Digest(ps_incarnation, "public number").data(),
              sizeof(number));
  return number | 1;
}

std::string AdmissionOf(const AdmittedWorker& worker, uint64_t ps_incarnation) {
  const std::string name = NameOf(worker);
  const auto digest = Digest(ps_incarnation, name);
  return absl::StrCat(
      name, ".",
      absl::BytesToHexString(
          {reinterpret_cast<const char*>(digest.data()), digest.size()}));
}

absl::StatusOr<AdmittedWorker> ReadAdmission(absl::string_view admission,
                                             uint64_t ps_incarnation) {
  const absl::Status refusal = absl::PermissionDeniedError(
      "only a worker that is registered with the chief may push and pull; this "
      "one shows no admission to this ps");
  if (admission.size() > kMaxAdmission) return refusal;
  const std::vector<absl::string_view> parts = absl::StrSplit(admission, '.');
  AdmittedWorker worker;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &worker.index) ||
      !absl::SimpleAtoi(parts[2], &worker.incarnation)) {
    return refusal;
  }
  const std::string made = AdmissionOf(worker, ps_incarnation);
  const bool is_admitted =
      made.size() == admission.size() &&
      CRYPTO_memcmp(made.data(), admission.data(), made.size()) == 0;
  if (!is_admitted) {
    return absl::PermissionDeniedError(
        "the worker shows no admission to this process of the ps: the one "
        "before it has ended, and the chief gives workers their next admission "
        "when it has loaded this ps");
  }
  return worker;
}

}  // namespace parasol
