#ifndef PARASOL_COORDINATOR_STEPS_REPLICA_ASSIGNMENT_H_
#define PARASOL_COORDINATOR_STEPS_REPLICA_ASSIGNMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace parasol {

// The assignment of replicas to the workers that compute their gradients. Pure.
//
// Every replica has an owner while there is a worker. A worker that stays keeps
// its replicas, unless a worker that joins has fewer than its fair share and
// the former has more. The replicas of a lost worker go to the workers that
// have fewest.
//
// Replicas may have homes, if there are as many as all places have: a worker
// that joins gets the replicas with homes at its place from the workers that
// have them, and keeps them.
class ReplicaAssignment {
 public:
  // `first_version` must grow from one chief process to the next. The homes of
  // `per_place` neighbouring replicas are at each worker's place; 0: replicas
  // have none.
  ReplicaAssignment(int total_replicas, int64_t first_version,
                    int per_place = 0)
      : owners_(total_replicas),
        per_place_(per_place),
        version_(first_version) {}

  // Adds the worker at `place`, a number from 0 on. Changes nothing if it is
  // there already.
  void Join(uint64_t worker, int place = 0);
  void Lose(uint64_t worker);
  // Makes this a new assignment of the same replicas.
  void Renew() { ++version_; }

  bool Has(uint64_t worker) const { return replicas_.contains(worker); }
  // Returns the worker's replicas in ascending order; none if the worker is not
  // there.
  std::vector<int> ReplicasOf(uint64_t worker) const;

  // The version of the assignment; grows whenever a worker comes or goes, also
  // one without replicas, and with Renew().
  int64_t version() const { return version_; }

 private:
  void Give(int replica, uint64_t worker);
  int CountOf(uint64_t worker) const;
  bool IsAtHome(int replica) const;
  // Returns the worker's replica that another worker may have: the last replica
  // that is not at home, or else the last one. Requires that it has one.
  int LastOf(uint64_t worker) const;
  // Return the worker with the fewest or the most replicas; of several, the
  // worker that joined first.
  uint64_t WithFewest() const;
  uint64_t WithMost() const;

  std::vector<std::optional<uint64_t>> owners_;  // index: replica
  std::vector<uint64_t> workers_;                // ordered by time of joining
  const int per_place_;
  std::map<uint64_t, int> places_;  // key: worker that is there
  // The replicas of each worker in owners_: a step asks for one worker's.
  std::map<uint64_t, std::set<int>> replicas_;  // key: worker that is there
  int64_t version_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_REPLICA_ASSIGNMENT_H_
