#ifndef PARASOL_CHIEF_REPLICA_ASSIGNMENT_H_
#define PARASOL_CHIEF_REPLICA_ASSIGNMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace parasol {

// Which worker computes which replicas' gradients. Pure.
//
// Every replica has an owner while there is a worker. A worker that stays keeps
// its replicas, unless one that joins has fewer than its fair share and it has
// more; those of a worker that is lost go to the ones that have fewest.
class ReplicaAssignment {
 public:
  // `first_version` must grow from one chief process to the next.
  ReplicaAssignment(int total_replicas, int64_t first_version)
      : owners_(total_replicas), version_(first_version) {}

  // Of a worker that is there already it changes nothing.
  void Join(uint64_t worker);
  void Lose(uint64_t worker);

  // In ascending order; none of a worker that is not there.
  std::vector<int> ReplicasOf(uint64_t worker) const;

  // Grows whenever a replica changes hands.
  int64_t version() const { return version_; }

 private:
  int CountOf(std::optional<uint64_t> worker) const;
  // Those of equal count in the order of their joining.
  uint64_t WithFewest() const;
  uint64_t WithMost() const;

  std::vector<std::optional<uint64_t>> owners_;  // by replica
  std::vector<uint64_t> workers_;                // in the order of joining
  int64_t version_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_REPLICA_ASSIGNMENT_H_
