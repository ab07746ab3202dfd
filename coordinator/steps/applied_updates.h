#ifndef PARASOL_COORDINATOR_STEPS_APPLIED_UPDATES_H_
#define PARASOL_COORDINATOR_STEPS_APPLIED_UPDATES_H_

#include <cstdint>
#include <map>

namespace parasol {

// Updates that the ps say they have applied, beside the steps that workers say
// they have completed. A step is completed when all ps have applied its
// gradients. So workers can be ahead of any ps's last heartbeat by what was
// applied since, and no more: a worker that claims steps and pushes nothing is
// found out. Says nothing against anybody where no ps is heard. Pure.
class AppliedUpdates {
 public:
  // Number of steps in which workers may always be ahead, and that in which
  // they may at most: far more than are made between two heartbeats.
  static constexpr int64_t kAlwaysAhead = 4096;
  static constexpr int64_t kMostAhead = 65536;

  // Notes a heartbeat of the process at a ps's place: the number of updates
  // since it was loaded.
  // Workers have completed `completed` steps by then.
  void Hear(int ps, uint64_t process, int64_t updates, int64_t completed);
  void Forget(int ps) { ps_.erase(ps); }

  // Returns false if workers can't have completed so many steps, where each
  // push is an update (asynchronous training).
  bool Explain(int64_t completed) const;
  // Returns the number of steps that can be completed, where each step is an
  // update (synchronous training).
  int64_t MostSteps() const;

 private:
  struct Ps {
    uint64_t process = 0;
    // The last heartbeat's updates.
    int64_t newest = 0;
    // Number of updates for as many completed steps.
    int64_t applied = 0;
  };

  std::map<int, Ps> ps_;  // key: index
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_APPLIED_UPDATES_H_
