#ifndef PARASOL_TESTS_SIMULATION_GROUP_PROCESS_THREADS_H_
#define PARASOL_TESTS_SIMULATION_GROUP_PROCESS_THREADS_H_

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "tests/simulation/process.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

class ProcessThreads;

// All threads of the code under test: one of them runs at a time, or the
// simulation does. So code that blocks runs the same each time, as long as it
// blocks on its clock, and on what the simulation gives it, alone.
class ThreadTurns {
 public:
  ThreadTurns() : simulation_(std::this_thread::get_id()) {}

  // Lets the threads go on that can, in a fixed order, until none can.
  void RunReady();

 private:
  friend class ProcessThreads;

  const std::thread::id simulation_;
  std::vector<ProcessThreads*> processes_;
  int64_t waits_ = 0;
  absl::Mutex mu_;
  absl::CondVar idle_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
};

// The threads of one process, and the clock that they wait on. A thread of a
// process that is stopped does not go on, and its time stands still with the
// process's timers.
class ProcessThreads : public Clock {
 public:
  // Calls `on_ran` after threads of the process have run.
  ProcessThreads(World& world, Process& process, ThreadTurns& turns,
                 std::function<void()> on_ran);
  ~ProcessThreads() override;

  absl::Time Now() override;
  bool AwaitWithTimeout(absl::Mutex& mu, const absl::Condition& condition,
                        absl::Duration timeout) override;

  // Calls `begin`, which starts one thread, and returns when the thread waits
  // or has ended.
  void Start(absl::FunctionRef<void()> begin);
  // Takes the calling thread for one of the process's. A thread that may end
  // without ever waiting calls this first.
  void Enter();
  // Blocks the calling thread until `condition` holds, or for `timeout`.
  bool Await(std::function<bool()> condition, absl::Duration timeout);

  // The process is gone: its threads reach nobody any more, and their waits end
  // when somebody waits for them.
  void Abandon() { is_abandoned_ = true; }
  bool is_abandoned() const { return is_abandoned_; }
  // Lets the threads of a process that is gone come to their ends.
  void Drain();

 private:
  friend class ThreadTurns;
  struct Wait {
    absl::Mutex* mu;
    const absl::Condition* condition;
    int64_t number = 0;
    bool has_expired = false;
    bool has_turn = false;
    absl::CondVar turn = {};
  };
  // Tells the simulation that the thread has ended.
  struct Mark {
    ProcessThreads* threads = nullptr;
    ~Mark();
  };
  static thread_local Mark mark_;

  bool IsReady(Wait& wait) const;
  // Lets the thread go on until it waits again or has ended.
  void Resume(Wait* wait);
  // Lets those go on that can; returns false if none could.
  bool RunReady();
  void Expire(int64_t number);
  void HasEnded();
  // The wait of the simulation itself for a process that is gone.
  bool LetTimePass(absl::Mutex& mu, const absl::Condition& condition,
                   absl::Duration timeout);

  World& world_;
  Process& process_;
  ThreadTurns& turns_;
  const std::function<void()> on_ran_;
  std::vector<Wait*> parked_;
  bool is_abandoned_ = false;
  absl::Duration passed_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_PROCESS_THREADS_H_
