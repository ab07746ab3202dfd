#ifndef PARASOL_CLUSTER_TRUST_STANDBY_TICKET_H_
#define PARASOL_CLUSTER_TRUST_STANDBY_TICKET_H_

#include <cstdint>

namespace parasol {

// Returns the number by which a ps shows another one that the chief wants the
// standby of its shard there: the chief and the process that it is shown to,
// which has the incarnation `host_incarnation`, can compute it. Never 0.
uint64_t StandbyTicket(uint32_t shard, uint32_t num_shards,
                       uint64_t host_incarnation);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_STANDBY_TICKET_H_
