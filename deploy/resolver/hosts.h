#ifndef PARASOL_DEPLOY_RESOLVER_HOSTS_H_
#define PARASOL_DEPLOY_RESOLVER_HOSTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Largest number of processes in a cluster that text may ask for, so that no
// text asks for more memory than there is.
inline constexpr int kMaxProcesses = 1 << 16;

// A machine and the number of processes that it has.
struct Host {
  // DNS name or IP address; an IPv6 address is in brackets.
  std::string name;
  int slots = 1;

  friend bool operator==(const Host&, const Host&) = default;
};

// Reads "a,b:2,[::1]:3": hosts with their slots, one where no number stands. A
// host that is there twice has the sum of its slots, at its first place, as for
// mpirun --host.
//   InvalidArgument  an element that is not a host, or more than kMaxProcesses
//                    slots; the message quotes it.
absl::StatusOr<std::vector<Host>> ParseHosts(absl::string_view list);

// Reads a hostfile of Open MPI: a host in each line, with "slots=2" behind it
// if it has more than one; comments start with '#'. "max_slots" is ignored.
//   InvalidArgument  as above; the message has the number of the line.
absl::StatusOr<std::vector<Host>> ParseHostfile(absl::string_view text);

// Returns `text` as one line of ASCII for an error, cut where it is long.
std::string Quoted(absl::string_view text);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_RESOLVER_HOSTS_H_
