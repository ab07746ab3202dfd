#ifndef PARASOL_CLUSTER_TRUST_CERTIFICATE_FILES_H_
#define PARASOL_CLUSTER_TRUST_CERTIFICATE_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "cluster/trust/key_material.h"

namespace parasol {

// The files, in PEM, that a task's certificate, its key and the authorities lie
// in.
struct CertificateFiles {
  std::string certificate = {};
  std::string key = {};
  std::string authorities = {};

  // Reads the files.
  //   InvalidArgument  one can't be read, or is larger than 1 MiB; the message
  //                    names its flag and path.
  absl::StatusOr<KeyMaterial> Read() const;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_CERTIFICATE_FILES_H_
