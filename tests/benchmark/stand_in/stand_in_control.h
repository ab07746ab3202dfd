#ifndef PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_CONTROL_H_
#define PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_CONTROL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/rpc/completion_thread.h"
#include "tests/benchmark/stand_in/stand_in_service.h"

namespace parasol {

class StandInTask;

// Tasks that speak to a chief as ps and workers do, over a connection each, and
// train nothing: a worker has done a step when it is granted. One thread has
// all of them.
class StandInTasks {
 public:
  struct Options {
    std::string chief_address;
    int workers = 0;
    // Examples of the training set: a step takes one.
    int64_t examples = int64_t{1} << 40;
    // The ps that orders go to; their tasks register with its ports' numbers.
    const StandInPs* ps = nullptr;
    int num_ps = 0;
    // Workers report a step when all others have done it, too.
    bool in_step = false;
  };

  explicit StandInTasks(const Options& options);
  ~StandInTasks();

  // Number of tasks that have registered.
  int registered() const { return registered_; }
  // Number of claims that the chief has answered.
  int64_t claims() const { return claims_; }
  // Number of steps that all workers together have done.
  int64_t steps() const { return steps_; }

 private:
  friend class StandInTask;
  class End;

  const Options options_;
  std::atomic<int> registered_ = 0;
  std::atomic<int64_t> claims_ = 0;
  std::atomic<int64_t> steps_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::unique_ptr<CompletionThread> thread_;
  std::vector<std::unique_ptr<StandInTask>> tasks_;
};

// Exchange streams of as many workers to one ps, which send nothing. Each has a
// connection, and an admission to the ps process.
class StandInStreams {
 public:
  StandInStreams(const std::string& ps_address, uint64_t ps_incarnation,
                 int count);
  ~StandInStreams();

  // Number of streams that have begun and not ended.
  int open() const { return open_; }

 private:
  class Stream;

  std::atomic<int> open_ = 0;
  std::unique_ptr<CompletionThread> thread_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_STAND_IN_STAND_IN_CONTROL_H_
