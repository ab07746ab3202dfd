#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "third_party/cuda_on_host/order.h"

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
  // True until all that it waits for is known: Close() says it.
  bool is_open = false;
  bool done = false;
  bool needed = false;
  // State for ThreadSanitizer: the thread that runs the task, what comes before
  // it (tasks that are done included), and its end.
  Track track = {};
  std::vector<Moment> earlier = {};
  Moment end = NewMoment();
};

// Adds a task that is to run on `track` (default: the track of all
// communicators) when all of `after` (null: nothing) have run.
TaskPtr AddTask(Kind kind, int device, std::function<void()> run,
                std::vector<TaskPtr> after, const Track& track = {});

// Adds a task that waits for what another thread of the host, or a later call,
// is to bring, and tells it.
TaskPtr AddOpenTask(int device);
void Close(Task& task, std::vector<TaskPtr> after);

// Runs what the schedule lets run.
void Advance();

// Runs `task` (null: nothing) and all that it waits for, as far as no open task
// is among it.
void Demand(const TaskPtr& task);

// Runs all work of `device`, in the same way; of all devices if it is negative.
void DemandAll(int device);

// Two functions that also wait for other threads to close what is open. They
// need the runtime's lock, held once. A wait of a minute ends the program.
void Await(TaskPtr task);
void AwaitAll(int device);

// Waits until `condition` holds, which other threads bring about and then call
// Notify(). Needs the lock in the same way; `what` is what does not come.
void AwaitOthers(const std::function<bool()>& condition,
                 const std::string& what);
void Notify();

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_TASKS_H_
