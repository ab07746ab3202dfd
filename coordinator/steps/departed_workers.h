#ifndef PARASOL_COORDINATOR_STEPS_DEPARTED_WORKERS_H_
#define PARASOL_COORDINATOR_STEPS_DEPARTED_WORKERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/checkpoint.pb.h"

namespace parasol {

// The worker incarnations that do not take part, with the steps that they have
// done. Some are gone for good; the checkpoint names others, which have not
// come back to this chief yet. Beyond kMax the ones that departed first are
// forgotten. Pure.
class DepartedWorkers {
 public:
  static constexpr size_t kMax = 1 << 14;

  struct Worker {
    int64_t completed = 0;
    // Largest number of steps that it can have started; nullopt if it may have
    // been granted steps since the checkpoint.
    std::optional<int64_t> limit = std::nullopt;
    // The clock at the checkpoint, if the worker was alive then.
    std::optional<int64_t> clock = std::nullopt;
  };

  // Adds a worker as the one that departed last. Returns false if another one
  // was forgotten for it.
  bool Add(uint64_t incarnation, const Worker& worker);
  // Removes a worker and returns it; nullopt if it is not known.
  std::optional<Worker> Extract(uint64_t incarnation);
  // Returns nullptr if the worker is not known.
  const Worker* Find(uint64_t incarnation) const;

  size_t size() const { return workers_.size(); }
  // Adds an entry for each, the one that departed first in front.
  void AddTo(std::vector<durable::WorkerProgress>& progress) const;

 private:
  struct Entry {
    Worker worker;
    int64_t number = 0;
  };

  std::map<uint64_t, Entry> workers_;
  std::map<int64_t, uint64_t> order_;  // number → incarnation
  int64_t next_number_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_DEPARTED_WORKERS_H_
