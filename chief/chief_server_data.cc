// The part of the chief's server that takes what a training set that grows has.
#include "absl/synchronization/mutex.h"
#include "chief/chief_server.h"

namespace parasol {

bool ChiefServer::Follow(const FollowedLook& look) {
  absl::MutexLock lock(&mu_);
  const bool has_room = coordinator_.Follow(look, clock_.Now());
  Changed();
  return has_room;
}

}  // namespace parasol
