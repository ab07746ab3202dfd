#ifndef PARASOL_COORDINATOR_TASK_REPORTS_H_
#define PARASOL_COORDINATOR_TASK_REPORTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/task_id.h"
#include "proto/chief.pb.h"

namespace parasol {

// The last report of each task about itself: its process, the ps that it waits
// for, and what a ps does. What a process has said is kept beside its
// successor's words, for it gets its place back if that one is lost at once.
// Nothing of it decides anything. Pure.
class TaskReports {
 public:
  // Take what a task says; what is out of bounds is cut, or left out.
  void Begin(const wire::RegisterRequest& request);
  void Keep(const wire::HeartbeatRequest& request);

  // The names of those that tasks speak of.
  struct Names {
    std::vector<std::string> shards = {};  // index: the shard's position
    std::map<uint64_t, std::string> workers = {};  // key: incarnation
  };
  // Adds what the process at `id` has said to its status.
  void Describe(const TaskId& id, uint64_t incarnation, const Names& names,
                wire::TaskStatus& status) const;

 private:
  struct Said {
    uint64_t incarnation = 0;
    std::string version = {};
    std::string process = {};
    std::vector<wire::PsWait> waits = {};
    wire::PsLoad load = {};
    bool has_load = false;
  };

  struct Place {
    Said newest = {};
    Said former = {};
  };

  Said& SaidBy(const wire::Task& task);

  std::map<TaskId, Place> places_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_TASK_REPORTS_H_
