#include "cluster/trust/standby_ticket.h"

#include <cstddef>
#include <string>

#include "cluster/trust/process_secret.h"

namespace parasol {

// No worker has such an index, so no worker's admission has these digits.
uint64_t StandbyTicket(uint32_t shard, uint32_t num_shards,
                       uint64_t host_incarnation) {
  const std::string proof = AdmissionOf(
      {.index = -1 - static_cast<int>(shard), .incarnation = num_shards},
      host_incarnation);
  uint64_t ticket = 0;
  // It ends with a digest in hexadecimal.
  constexpr size_t kDigits = 16;
  for (const char digit : proof.substr(proof.size() - kDigits)) {
    ticket = ticket * 16 + static_cast<uint64_t>(
                               digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return ticket | 1;
}

}  // namespace parasol
