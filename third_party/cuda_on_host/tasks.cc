#include "third_party/cuda_on_host/tasks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <utility>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

// The tasks in the order in which they were added: each stands behind all tasks
// that it waits for.
std::vector<TaskPtr>& Pending() {
  static auto* const pending = new std::vector<TaskPtr>;
  return *pending;
}

std::condition_variable_any& Changed() {
  static auto* const changed = new std::condition_variable_any;
  return *changed;
}

bool IsReady(const Task& task) {
  return !task.is_open &&
         std::all_of(task.after.begin(), task.after.end(),
                     [](const TaskPtr& other) { return other->done; });
}

// The end of all tasks of a device that have run.
const Moment& EndOf(int device) {
  static auto* const ends = new std::map<int, Moment>;
  Moment& end = (*ends)[device];
  if (end == nullptr) end = NewMoment();
  return end;
}

// Notes the work of a stream; ranks note their work themselves.
void NoteRun(const Task& task) {
  if (task.track.stream == nullptr || task.kind == Kind::kNone) return;
  NoteDone(task.device, task.kind == Kind::kCompute  ? 'k'
                        : task.kind == Kind::kCopyIn ? 'i'
                                                     : 'o');
}

void Run(Task& task) {
  {
    const OnTrack on_track(task.track);
    for (const Moment& earlier : task.earlier) ComeAfter(earlier);
    if (task.run) task.run();
    NoteRun(task);
    ComeBefore(task.end);
    ComeBefore(EndOf(task.device));
  }
  task.done = true;
  task.run = nullptr;
  task.after.clear();
  task.earlier.clear();
}

// Makes `task` wait for `other`, which may be null or done.
void RunAfter(Task& task, TaskPtr other) {
  if (other == nullptr) return;
  task.earlier.push_back(other->end);
  if (!other->done) task.after.push_back(std::move(other));
}

bool IsLate(const Task& task) {
  if (task.kind == Kind::kNone) return false;
  switch (TheSchedule().late) {
    case Late::kNothing:
      return false;
    case Late::kCompute:
      return task.kind == Kind::kCompute;
    case Late::kCopyIn:
      return task.kind == Kind::kCopyIn;
    case Late::kCopyOut:
      return task.kind == Kind::kCopyOut;
    case Late::kRandom:
      return TheRandom().Below(4) != 0;
  }
  return false;
}

void Forget() {
  std::vector<TaskPtr>& pending = Pending();
  std::erase_if(pending, [](const TaskPtr& task) { return task->done; });
}

void MarkNeeded(const TaskPtr& task) {
  std::vector<Task*> open = {task.get()};
  while (!open.empty()) {
    Task& next = *open.back();
    open.pop_back();
    if (next.done || next.needed) continue;
    next.needed = true;
    for (const TaskPtr& other : next.after) open.push_back(other.get());
  }
}

// Runs the needed tasks one at a time; each is chosen by chance among the ready
// ones.
void RunNeededAtRandom() {
  for (;;) {
    std::vector<Task*> ready;
    for (const TaskPtr& task : Pending()) {
      if (task->needed && !task->done && IsReady(*task)) {
        ready.push_back(task.get());
      }
    }
    if (ready.empty()) return;
    Run(*ready[TheRandom().Below(ready.size())]);
  }
}

void RunNeeded() {
  if (TheSchedule().late == Late::kRandom) return RunNeededAtRandom();
  // Mostly once. A task that was open stands before what it waits for.
  for (bool any = true; any;) {
    any = false;
    for (const TaskPtr& task : Pending()) {
      if (!task->needed || task->done || !IsReady(*task)) continue;
      Run(*task);
      any = true;
    }
  }
}

bool IsIdle(int device) {
  const std::vector<TaskPtr>& pending = Pending();
  return std::none_of(pending.begin(), pending.end(),
                      [device](const TaskPtr& task) {
                        return task->device == device && !task->done;
                      });
}

}  // namespace

TaskPtr AddTask(Kind kind, int device, std::function<void()> run,
                std::vector<TaskPtr> after, const Track& track) {
  auto task = std::make_shared<Task>();
  task->kind = kind;
  task->device = device;
  task->run = std::move(run);
  task->track = track;
  Open(track);
  task->earlier.push_back(NewMoment());
  ComeBefore(task->earlier.back());
  for (TaskPtr& other : after) RunAfter(*task, std::move(other));
  Pending().push_back(task);
  return task;
}

TaskPtr AddOpenTask(int device) {
  TaskPtr task = AddTask(Kind::kNone, device, nullptr, {});
  task->is_open = true;
  return task;
}

void Close(Task& task, std::vector<TaskPtr> after) {
  task.is_open = false;
  for (TaskPtr& other : after) RunAfter(task, std::move(other));
  if (task.needed) {
    for (const TaskPtr& other : task.after) MarkNeeded(other);
  }
  Notify();
}

void Advance() {
  bool any = false;
  for (const TaskPtr& task : Pending()) {
    if (task->done || !IsReady(*task) || IsLate(*task)) continue;
    Run(*task);
    any = true;
  }
  if (any) Forget();
}

void Demand(const TaskPtr& task) {
  if (task == nullptr || task->done) return;
  MarkNeeded(task);
  RunNeeded();
  Forget();
}

void DemandAll(int device) {
  for (const TaskPtr& task : Pending()) {
    if (device < 0 || task->device == device) MarkNeeded(task);
  }
  RunNeeded();
  Forget();
}

void Await(TaskPtr task) {
  AwaitOthers(
      [&task] {
        Demand(task);
        return task == nullptr || task->done;
      },
      "a collective operation that other ranks have not joined");
  if (task != nullptr) ComeAfter(task->end);
}

void AwaitAll(int device) {
  AwaitOthers(
      [device] {
        DemandAll(device);
        return IsIdle(device);
      },
      "a collective operation that other ranks have not joined");
  ComeAfter(EndOf(device));
}

void AwaitOthers(const std::function<bool()>& condition,
                 const std::string& what) {
  constexpr std::chrono::minutes kLimit{1};
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (!condition()) {
    if (Changed().wait_until(TheLock(), deadline) == std::cv_status::timeout) {
      Die("a wait for " + what);
    }
  }
}

void Notify() { Changed().notify_all(); }

}  // namespace cuda_on_host
