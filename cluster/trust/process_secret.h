#ifndef PARASOL_CLUSTER_TRUST_PROCESS_SECRET_H_
#define PARASOL_CLUSTER_TRUST_PROCESS_SECRET_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A ps's incarnation is a secret that the process and its chief share: whoever
// gives orders shows it. Others are told what can be computed from it, and from
// which it can't be computed. So what follows holds in jobs without keys, too,
// against everybody who has not heard what tasks send each other.
namespace parasol {

// Returns the number by which workers name the process in their messages. Never
// 0.
uint64_t PublicNumber(uint64_t ps_incarnation);

// A worker process that is registered with the chief.
struct AdmittedWorker {
  int index = 0;
  uint64_t incarnation = 0;

  friend bool operator==(const AdmittedWorker&,
                         const AdmittedWorker&) = default;
};

// Returns the proof that the chief gives to a worker for this ps process. It is
// ASCII, and the same whenever it is asked for.
std::string AdmissionOf(const AdmittedWorker& worker, uint64_t ps_incarnation);

// Returns the worker that a ps process is shown the admission of.
//   PermissionDenied  the chief has admitted no such worker to this process.
absl::StatusOr<AdmittedWorker> ReadAdmission(absl::string_view admission,
                                             uint64_t ps_incarnation);

// Key of an admission in the metadata of a worker's stream to a ps.
inline constexpr char kAdmissionKey[] = "parasol-admission";

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_PROCESS_SECRET_H_
