#include "cluster/trust/key_material.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/trust/openssl_handles.h"

namespace parasol {
namespace {

// Most certificates in one text: a chain or a bundle of authorities.
constexpr int kMaxCertificates = 512;
constexpr size_t kMaxShownBytes = 100;

openssl::Bio BioOf(absl::string_view text) {
  return openssl::Bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Never asks a terminal for a password.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<openssl::Certificates> ParseCertificates(absl::string_view pem) {
  openssl::Certificates certificates(sk_X509_new_null());
  const openssl::Bio bio = BioOf(pem);
  ERR_clear_error();
  while (sk_X509_num(certificates.get()) < kMaxCertificates) {
    openssl::Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (next == nullptr) break;
    CHECK_GT(sk_X509_push(certificates.get(), next.release()), 0);
  }
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  const int count = sk_X509_num(certificates.get());
  if (count == kMaxCertificates) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", kMaxCertificates, " certificates or more"));
  }
  if (!at_end) {
    return absl::InvalidArgumentError(
        absl::StrCat("certificate ", count, " is damaged"));
  }
  if (count == 0) return absl::InvalidArgumentError("has no certificate (PEM)");
  return certificates;
}

absl::StatusOr<openssl::Key> ParseKey(absl::string_view pem) {
  const openssl::Bio bio = BioOf(pem);
  openssl::Key key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      "has no private key (PEM, without a password)");
}

PeerIdentity IdentityInCertificate(const X509* certificate) {
  const openssl::Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  std::vector<std::string> dns;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type));
    if (type != GEN_URI && type != GEN_DNS) continue;
    (type == GEN_URI ? uris : dns)
        .emplace_back(
            reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
            ASN1_STRING_length(value));
  }
  return IdentityInNames(uris, dns).value_or(PeerIdentity());
}

std::string TimeText(const ASN1_TIME* time) {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (ASN1_TIME_print(bio.get(), time) != 1) return "a time that is damaged";
  const auto bytes = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, bytes);
}

// Returns whose a certificate that is refused says that it is. A stranger may
// have written that.
std::string Claim(const PeerIdentity& identity) {
  return identity.role == PeerRole::kUnknown
             ? " (it says no task)"
             : absl::StrCat(" (it says ",
                            ShownText(identity.ToString(), kMaxShownBytes),
                            ")");
}

// Continues "the certificate ".
std::string Fault(int error, const X509* certificate) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return absl::StrCat("expired at ",
                          TimeText(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return absl::StrCat("is not valid before ",
                          TimeText(X509_get0_notBefore(certificate)));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "is of another authority than this process trusts: both need the "
             "same --token_file or --tls_ca";
    default:
      return absl::StrCat("is refused: ", X509_verify_cert_error_string(error));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Authorities>> Authorities::Parse(
    absl::string_view pem) {
  ASSIGN_OR_RETURN(const openssl::Certificates certificates,
                   ParseCertificates(pem));
  openssl::Store store(X509_STORE_new());
  CHECK(store != nullptr);
  for (int i = 0; i < sk_X509_num(certificates.get()); ++i) {
    X509_STORE_add_cert(store.get(), sk_X509_value(certificates.get(), i));
  }
  return std::shared_ptr<const Authorities>(new Authorities(store.release()));
}

Authorities::~Authorities() { X509_STORE_free(store_); }

absl::StatusOr<PeerIdentity> Authorities::Verify(absl::string_view certificates,
                                                 PeerSide side,
                                                 absl::Time now) const {
  const absl::StatusOr<openssl::Certificates> chain =
      ParseCertificates(certificates);
  if (!chain.ok()) {
    return absl::UnauthenticatedError(chain.status().message());
  }
  X509* const certificate = sk_X509_value(chain->get(), 0);
  const openssl::Verification verification(X509_STORE_CTX_new());
  CHECK(verification != nullptr &&
        X509_STORE_CTX_init(verification.get(), store_, certificate,
                            chain->get()) == 1);
  X509_STORE_CTX_set_default(verification.get(), side == PeerSide::kClient
                                                     ? "ssl_client"
                                                     : "ssl_server");
  X509_VERIFY_PARAM* const parameters =
      X509_STORE_CTX_get0_param(verification.get());
  X509_VERIFY_PARAM_set_time(parameters, absl::ToTimeT(now));
  // As OpenSSL asks of the certificates of its connections in Debian: keys of
  // 112 bits of security, and no SHA-1.
  X509_VERIFY_PARAM_set_auth_level(parameters, 2);
  // An authority in --tls_ca may be one that another one has signed.
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_PARTIAL_CHAIN);
  const PeerIdentity identity = IdentityInCertificate(certificate);
  const int verified = X509_verify_cert(verification.get());
  const int error = X509_STORE_CTX_get_error(verification.get());
  ERR_clear_error();
  if (verified != 1) {
    const X509* const faulty =
        X509_STORE_CTX_get_current_cert(verification.get());
    return absl::UnauthenticatedError(
        absl::StrCat(Fault(error, faulty == nullptr ? certificate : faulty),
                     Claim(identity)));
  }
  if (identity.role == PeerRole::kUnknown) {
    return absl::UnauthenticatedError(
        "says no task: it needs a URI spiffe://DOMAIN/JOB/ROLE/INDEX or a DNS "
        "name JOB-ROLE-INDEX");
  }
  return identity;
}

absl::StatusOr<PeerIdentity> IdentityOf(const KeyMaterial& material,
                                        absl::Time now) {
  ASSIGN_OR_RETURN(const openssl::Certificates certificates,
                   ParseCertificates(material.certificates),
                   _ << "the certificate's file");
  ASSIGN_OR_RETURN(const openssl::Key key, ParseKey(material.private_key),
                   _ << "the key's file");
  if (X509_check_private_key(sk_X509_value(certificates.get(), 0), key.get()) !=
      1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("the key is not the certificate's");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const Authorities> authorities,
                   Authorities::Parse(material.authorities),
                   _ << "the authorities' file");
  PeerIdentity identity;
  for (const PeerSide side : {PeerSide::kClient, PeerSide::kServer}) {
    absl::StatusOr<PeerIdentity> found =
        authorities->Verify(material.certificates, side, now);
    if (!found.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the certificate ", found.status().message()));
    }
    identity = *std::move(found);
  }
  return identity;
}

}  // namespace parasol
