#include "cluster/trust/certificate_files.h"

#include <cstddef>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

absl::StatusOr<std::string> ReadPem(absl::string_view flag,
                                    const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  // A directory opens, but can't be read.
  const bool readable =
      file && (file.read(text.data(), text.size()), !file.bad());
  text.resize(readable ? file.gcount() : 0);
  if (readable && text.size() <= kMaxFileBytes) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, "=", path,
                   readable ? ": is larger than 1 MiB"
                            : ": can't be read; name a PEM file"));
}

}  // namespace

absl::StatusOr<KeyMaterial> CertificateFiles::Read() const {
  KeyMaterial material;
  ASSIGN_OR_RETURN(material.certificates,
                   ReadPem("--tls_certificate", certificate));
  ASSIGN_OR_RETURN(material.private_key, ReadPem("--tls_key", key));
  ASSIGN_OR_RETURN(material.authorities, ReadPem("--tls_ca", authorities));
  return material;
}

}  // namespace parasol
