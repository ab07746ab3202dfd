#ifndef PARASOL_CLUSTER_TRUST_SHA256_H_
#define PARASOL_CLUSTER_TRUST_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace parasol {

// SHA-256 of bytes that come in pieces. Move-only; not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void Add(absl::string_view bytes);

  // Returns the digest in 64 lower-case hexadecimal digits. Must be called
  // once, last.
  std::string Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_SHA256_H_
