#ifndef PARASOL_CLUSTER_TRUST_OPENSSL_HANDLES_H_
#define PARASOL_CLUSTER_TRUST_OPENSSL_HANDLES_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

// Owners of OpenSSL's objects.
namespace parasol::openssl {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <typename T, auto kFree>
using Handle = std::unique_ptr<T, Free<kFree>>;

inline void FreeCertificates(STACK_OF(X509) * certificates) {
  sk_X509_pop_free(certificates, X509_free);
}

using Bio = Handle<BIO, BIO_free>;
using Key = Handle<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Handle<X509, X509_free>;
using Certificates = Handle<STACK_OF(X509), FreeCertificates>;
using Names = Handle<GENERAL_NAMES, GENERAL_NAMES_free>;
using Store = Handle<X509_STORE, X509_STORE_free>;
using Verification = Handle<X509_STORE_CTX, X509_STORE_CTX_free>;

}  // namespace parasol::openssl

#endif  // PARASOL_CLUSTER_TRUST_OPENSSL_HANDLES_H_
