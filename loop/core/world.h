#ifndef PARASOL_LOOP_CORE_WORLD_H_
#define PARASOL_LOOP_CORE_WORLD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/parallel_calls.h"
#include "loop/core/meeting.h"
#include "loop/peers/peers.h"
#include "ml/device/device.h"

namespace parasol::loop {

// The replicas of a strategy: the ones of this process, each on a thread of
// its own, and the ones of its peers. All processes have as many.
//
// A replica is numbered in its process (`local`) and over all processes
// (`replica`). Used by the program's thread, but for what a step may call.
class World {
 public:
  // Called on the program's thread at the end of each step of all replicas of
  // this process, with the step's result so far. An error that it returns is
  // the step's, if the step has none.
  using StepEnd = std::function<absl::Status(const absl::Status& result)>;

  // `devices`: one for each replica of this process, with their names for
  // errors. `peers` must outlive this object.
  World(const std::vector<std::string>& names,
        std::vector<std::unique_ptr<Device>> devices, Peers& peers);

  int num_local() const { return meeting_.num_replicas(); }
  int first_replica() const { return peers_.rank() * num_local(); }
  // Returns the number of a replica of this process among all that run the
  // program, in step or not: with it what is drawn at random differs.
  int replica_id(int local) const {
    return peers_.place() * num_local() + local;
  }
  int num_replicas() const { return peers_.num_processes() * num_local(); }
  int num_processes() const { return peers_.num_processes(); }
  Peers& peers() { return peers_; }
  // Returns the device of a replica of this process, for its thread alone.
  Device& device(int local) { return *devices_[local]; }

  // Number of steps that were begun.
  int64_t steps() const { return steps_; }
  // The memory of that number, which checkpoints have.
  int64_t& kept_steps() { return steps_; }
  // Adds what is done at the end of each step, in the order of these calls.
  void AtStepEnd(StepEnd end) { ends_.push_back(std::move(end)); }
  // Returns, in a step, the number of calls before this one in the replica's
  // step, the key of what is drawn at random without one.
  int64_t NextDraw(int local) { return draws_[local]++; }

  // Calls `step` for each replica of this process at the same time, and returns
  // the error that came first. What it throws is an error, too.
  absl::Status Run(const std::function<absl::Status(int local)>& step);

  // Of a step: as Meeting::Join().
  absl::Status Meet(
      int local, absl::string_view what, const void* brought,
      absl::FunctionRef<absl::Status(absl::Span<const void* const>)> act) {
    return meeting_.Join(local, what, brought, act);
  }

  // Returns the number in its process of the replica whose step the calling
  // thread is in, if it is one of this world; -1 outside of steps.
  int current_local() const;

  // The world whose step the calling thread is in; null outside of steps.
  static World* Current();

 private:
  // Returns the result of a replica's step, which names the replica if it is an
  // error of that one among several.
  absl::Status FromReplica(int local, const absl::Status& result) const;

  const std::vector<std::string> names_;
  const std::vector<std::unique_ptr<Device>> devices_;
  Peers& peers_;
  Meeting meeting_;
  ParallelCalls calls_;
  int64_t steps_ = 0;
  std::vector<int64_t> draws_;  // index: replica of this process
  std::vector<StepEnd> ends_;
};

// Returns what `call` returns, or what it throws as a status: a TensorError's
// own, Internal for any other std::exception, with its text.
absl::Status CatchExceptions(absl::FunctionRef<absl::Status()> call);

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_WORLD_H_
