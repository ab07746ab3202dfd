#ifndef PARASOL_CHIEF_PORT_PROBE_H_
#define PARASOL_CHIEF_PORT_PROBE_H_

#include <string>

#include "absl/time/time.h"

namespace parasol {

// Longest time for which IsNobodyAt() waits for one host's answer.
inline constexpr absl::Duration kProbeLimit = absl::Milliseconds(200);

// Returns true if each host of this name refuses connections to the port of
// `address` ("host:port"): a process that has listened there is gone. False if
// one is accepted, or nothing is known: the name has no host, or the host does
// not answer. Takes as long as the machine's resolver does for a name.
bool IsNobodyAt(const std::string& address);

}  // namespace parasol

#endif  // PARASOL_CHIEF_PORT_PROBE_H_
