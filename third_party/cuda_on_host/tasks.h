#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

// The work of all streams, as tasks that wait for each other. No thread of its
// own carries it out: each call of the runtime runs what the schedule lets run,
// and a wait of the host runs all that it waits for. So a schedule gives the
// same order every time. All functions need the runtime's lock.
namespace cuda_on_host {

enum class Kind { kCompute, kCopyIn, kCopyOut, kNone };

struct Task;
using TaskPtr = std::shared_ptr<Task>;

struct Task {
  Kind kind = Kind::kNone;
  int device = 0;
  std::function<void()> run;
  std::vector<TaskPtr> after;
  bool done = false;
  bool needed = false;
};

// Adds a task that is to run when all of `after` (null: nothing) have.
TaskPtr AddTask(Kind kind, int device, std::function<void()> run,
                std::vector<TaskPtr> after);

// Runs what the schedule lets run.
void Advance();

// Runs `task` (null: nothing) and all that it waits for.
void Demand(const TaskPtr& task);

// Runs all work of `device`; of all devices if it is negative.
void DemandAll(int device);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_
