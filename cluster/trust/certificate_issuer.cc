#include "cluster/trust/certificate_issuer.h"

#include <openssl/pem.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

openssl::Handle<X509_NAME, X509_NAME_free> CommonName(const std::string& text) {
  openssl::Handle<X509_NAME, X509_NAME_free> name(X509_NAME_new());
  CHECK_EQ(X509_NAME_add_entry_by_txt(
               name.get(), "CN", MBSTRING_UTF8,
               reinterpret_cast<const unsigned char*>(text.data()),
               static_cast<int>(text.size()), -1, 0),
           1)
      << text;
  return name;
}

openssl::Certificate NewCertificate(const CertificateIssuer::Subject& subject,
                                    const std::string& issuer) {
  openssl::Certificate certificate(X509_new());
  CHECK(certificate != nullptr);
  X509* const x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  X509_set_subject_name(x509, CommonName(subject.name).get());
  X509_set_issuer_name(x509, CommonName(issuer).get());
  CHECK_EQ(ASN1_TIME_set_string_X509(X509_getm_notBefore(x509),
                                     subject.not_before.c_str()),
           1);
  CHECK_EQ(ASN1_TIME_set_string_X509(X509_getm_notAfter(x509),
                                     subject.not_after.c_str()),
           1);
  return certificate;
}

void AddExtension(const openssl::Certificate& issuer,
                  const openssl::Certificate& certificate, int kind,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer.get(), certificate.get(), nullptr, nullptr,
                 0);
  const openssl::Handle<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  CHECK(extension != nullptr) << value;
  X509_add_ext(certificate.get(), extension.get(), -1);
}

template <typename Write>
std::string TextOf(Write write) {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  CHECK_EQ(write(bio.get()), 1);
  char* text = nullptr;
  const auto bytes = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, bytes);
}

std::string PemOf(const openssl::Certificate& certificate) {
  return TextOf(
      [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); });
}

std::string PemOf(const openssl::Key& key) {
  return TextOf([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0,
                                    nullptr, nullptr);
  });
}

// Gives a certificate its number, 20 random bytes: two of one authority differ.
void DrawSerialNumber(const openssl::Certificate& certificate) {
  const openssl::Handle<BIGNUM, BN_free> number(BN_new());
  CHECK_EQ(BN_rand(number.get(), 159, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY), 1);
  CHECK(BN_to_ASN1_INTEGER(
            number.get(), X509_get_serialNumber(certificate.get())) != nullptr);
}

}  // namespace

CertificateIssuer::CertificateIssuer(const DerivedKey& seed,
                                     const std::string& name)
    : name_(name),
      key_(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(),
                                        seed.size())),
      certificate_(NewCertificate({.name = name}, name)) {
  CHECK(key_ != nullptr) << "OpenSSL has no Ed25519";
  X509_set_pubkey(certificate_.get(), key_.get());
  // One number for all: the certificate is the same in each process.
  ASN1_INTEGER_set(X509_get_serialNumber(certificate_.get()), 1);
  AddExtension(certificate_, certificate_, NID_basic_constraints,
               "critical,CA:TRUE");
  AddExtension(certificate_, certificate_, NID_key_usage,
               "critical,keyCertSign");
  AddExtension(certificate_, certificate_, NID_subject_key_identifier, "hash");
  CHECK_GT(X509_sign(certificate_.get(), key_.get(), nullptr), 0);
}

KeyMaterial CertificateIssuer::Issue(const Subject& subject) const {
  const openssl::Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  CHECK(key != nullptr);
  const openssl::Certificate certificate = NewCertificate(subject, name_);
  X509_set_pubkey(certificate.get(), key.get());
  DrawSerialNumber(certificate);
  // Tells authorities of one name apart.
  AddExtension(certificate_, certificate, NID_authority_key_identifier,
               "keyid:always");
  AddExtension(certificate_, certificate, NID_key_usage,
               absl::StrCat("critical,", subject.key_usage));
  if (!subject.extended_key_usage.empty()) {
    AddExtension(certificate_, certificate, NID_ext_key_usage,
                 subject.extended_key_usage);
  }
  if (!subject.alternative_names.empty()) {
    AddExtension(certificate_, certificate, NID_subject_alt_name,
                 subject.alternative_names);
  }
  CHECK_GT(X509_sign(certificate.get(), key_.get(), nullptr), 0);
  return {.certificates = PemOf(certificate),
          .private_key = PemOf(key),
          .authorities = PemOf(certificate_)};
}

KeyMaterial IssueByToken(const JobToken& token, PeerRole role, int index) {
  const PeerIdentity identity = {
      .job = token.JobName(), .role = role, .index = index};
  const CertificateIssuer issuer(token.Derive("authority"),
                                 absl::StrCat("authority of ", identity.job));
  return issuer.Issue({.name = identity.ToString(),
                       .alternative_names = absl::StrCat(
                           "URI:", IdentityUri(identity, "parasol"))});
}

}  // namespace parasol
