#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_ADDRESS_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Returns the canonical spelling of `address`, "host:port": two addresses are
// the same if their canonical spellings are. Names are in lower case, the port
// has no leading zeros, an IPv6 address is in brackets and as short as
// possible. Resolves no name.
//   InvalidArgument  no host, a host that is neither a name nor an address, no
//                    port, or one outside 1–65535; the message names the
//                    address.
absl::StatusOr<std::string> CanonicalAddress(absl::string_view address);

// Returns true if `address`, "host:port", is of this machine alone: localhost,
// or a loopback address in figures.
bool IsLoopback(absl::string_view address);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_ADDRESS_H_
