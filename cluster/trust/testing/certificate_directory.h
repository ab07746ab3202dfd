#ifndef PARASOL_CLUSTER_TRUST_TESTING_CERTIFICATE_DIRECTORY_H_
#define PARASOL_CLUSTER_TRUST_TESTING_CERTIFICATE_DIRECTORY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/certificate_issuer.h"

namespace parasol {

// A folder for the files of one task, and an authority of the name `authority`
// that issues what lies there. Authorities of one name are one.
class CertificateDirectory {
 public:
  // Makes a folder `name` in the test's own.
  CertificateDirectory(absl::string_view name, absl::string_view authority);

  CertificateFiles files() const;

  // Puts a new certificate, and its key, into the files.
  void Issue(const CertificateIssuer::Subject& subject) const;
  // Does it for a task: "mnist/ps/1".
  void Issue(absl::string_view task) const;
  // Puts text into a file.
  void Write(const std::string& path, absl::string_view text) const;

  const CertificateIssuer& issuer() const { return issuer_; }

 private:
  const std::string path_;
  const CertificateIssuer issuer_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TESTING_CERTIFICATE_DIRECTORY_H_
