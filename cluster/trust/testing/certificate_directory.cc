#include "cluster/trust/testing/certificate_directory.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "cluster/trust/job_token.h"
#include "gtest/gtest.h"

namespace parasol {

CertificateDirectory::CertificateDirectory(absl::string_view name,
                                           absl::string_view authority)
    : path_(absl::StrCat(testing::TempDir(), "/", name)),
      issuer_(JobToken::Parse(absl::StrCat("for tests only: ", authority))
                  ->Derive("authority"),
              std::string(authority)) {
  std::filesystem::remove_all(path_);
  CHECK(std::filesystem::create_directories(path_)) << path_;
}

CertificateFiles CertificateDirectory::files() const {
  return {.certificate = absl::StrCat(path_, "/tls.crt"),
          .key = absl::StrCat(path_, "/tls.key"),
          .authorities = absl::StrCat(path_, "/ca.crt")};
}

void CertificateDirectory::Issue(
    const CertificateIssuer::Subject& subject) const {
  const KeyMaterial material = issuer_.Issue(subject);
  Write(files().certificate, material.certificates);
  Write(files().key, material.private_key);
  Write(files().authorities, material.authorities);
}

void CertificateDirectory::Issue(absl::string_view task) const {
  Issue(
      {.alternative_names = absl::StrCat("URI:spiffe://cluster.local/", task)});
}

void CertificateDirectory::Write(const std::string& path,
                                 absl::string_view text) const {
  std::ofstream file(path, std::ios::binary);
  file << text;
  CHECK(file.flush().good()) << path;
}

}  // namespace parasol
