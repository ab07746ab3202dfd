#ifndef PARASOL_LOOP_STRATEGY_H_
#define PARASOL_LOOP_STRATEGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "loop/core/local_iterations.h"
#include "loop/core/registry.h"
#include "loop/core/shared_variables.h"
#include "loop/core/world.h"
#include "loop/dataset.h"
#include "loop/distributed_dataset.h"
#include "loop/per_replica.h"
#include "loop/replica_context.h"
#include "loop/run_step.h"
#include "ml/tape/tensor.h"

namespace parasol {
class ParameterStore;
}  // namespace parasol

namespace parasol::loop {

class ProgramVariables;

// A strategy of tf.distribute, as a program with a training loop of its own
// sees it: how many replicas there are, and how their values become one.
//
//   ASSIGN_OR_RETURN(auto strategy, Strategy::Mirrored({"cpu:0", "cpu:1"}));
//   Strategy::Scope scope(*strategy);
//   … variables, models, optimizers …
//   auto losses = strategy->Run(step, batch);
//   printf("%g\n", strategy->Reduce(kSum, losses).scalar());
//
// Used by the thread that made it, but for what replicas call in a step.
class Strategy {
 public:
  struct Options {
    // Key of initial values and of what is drawn at random. All processes have
    // the same.
    uint64_t seed = 0;
    // CPU threads of each replica.
    int threads = 1;
  };

  // One replica in this process: what there is without a strategy.
  static absl::StatusOr<std::unique_ptr<Strategy>> Default(
      const Options& options);
  static absl::StatusOr<std::unique_ptr<Strategy>> Default() {
    return Default(Options());
  }
  // One replica, on a device: "cpu", "cpu:1", "cuda:0", or as TensorFlow names
  // it. There its models compute; tensors, and operations on them, are the
  // host's (docs/custom_loop.md).
  //   InvalidArgument     it is not here: names it; or it appears twice in the
  //                       list of the functions that follow.
  //   FailedPrecondition  a library that it needs is not here.
  static absl::StatusOr<std::unique_ptr<Strategy>> OneDevice(
      const std::string& device, const Options& options);
  // A replica on each device.
  static absl::StatusOr<std::unique_ptr<Strategy>> Mirrored(
      const std::vector<std::string>& devices, const Options& options);
  static absl::StatusOr<std::unique_ptr<Strategy>> Mirrored(
      const std::vector<std::string>& devices) {
    return Mirrored(devices, Options());
  }
  // A replica on each device of each process of `peers`.
  static absl::StatusOr<std::unique_ptr<Strategy>> WithPeers(
      const std::vector<std::string>& devices, const Options& options,
      std::unique_ptr<Peers> peers);
  ~Strategy();

  // Opens a strategy: what is made while a scope is open is the strategy's. The
  // scope of the strategy that is open already may be opened again.
  // Another one's is an error, as two strategies in one scope have no meaning:
  // the constructor throws a TensorError, which ends the program with a line.
  class Scope {
   public:
    explicit Scope(Strategy& strategy);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Strategy* const before_;
  };

  // Number of replicas of all processes whose gradients one update has: under
  // parameter_server the replicas of this worker.
  int num_replicas_in_sync() const { return world_.num_replicas(); }
  // Number of replicas of this process.
  int num_local_replicas() const { return world_.num_local(); }
  // True in one process of all: who prints and writes files.
  bool is_chief() const { return peers_->place() == 0; }
  const std::vector<std::string>& devices() const { return devices_; }
  uint64_t seed() const { return options_.seed; }

  // Calls `step(context, arguments…)` on every replica of this process at the
  // same time, each with its own value of an argument that is a PerReplica, and
  // with other arguments as they are. All processes run the same steps in the
  // same order. Returns what the step returns for each replica, a PerReplica<T>
  // for a step that returns T or StatusOr<T>; a Status for one that returns
  // that or nothing. An error of one replica, an exception too, ends the step
  // on all.
  template <typename Step, typename... Arguments>
  auto Run(Step&& step, const Arguments&... arguments) {
    return RunStep([this](const auto& one) { return RunOnReplicas(one); },
                   world_, std::forward<Step>(step), arguments...);
  }

  // Returns the sum or the mean of the values of all replicas. Without an axis
  // all have one shape. With one, each is first added up along it; a mean is
  // over all elements there, whatever each replica has.
  Tensor Reduce(ReduceOp op, const PerReplica<Tensor>& values,
                std::optional<int> axis = std::nullopt);
  // A number that is no replica's is its own sum where there is one replica,
  // and its own mean everywhere.
  //   InvalidArgument  a sum over several replicas of it has no meaning.
  Tensor Reduce(ReduceOp op, const Tensor& value);
  // Returns the values of all replicas, one behind the other along `axis`.
  Tensor Gather(const PerReplica<Tensor>& values, int axis = 0);
  // Returns when all processes have come here.
  absl::Status Barrier();

  // Cuts each batch of `dataset`, a batch of all replicas, into a piece for
  // each: of m examples, ceil(m / replicas) for the first ones, and what is
  // left, or no example, for the last ones. The strategy must outlive the
  // distributed data set and its iterators.
  DistributedDataset DistributeDataset(Dataset dataset);
  // Has each process read a data set of its own, whose batches are its
  // replicas' together.
  absl::StatusOr<DistributedDataset> DistributeDataset(
      const std::function<absl::StatusOr<Dataset>(const InputContext&)>& make);

  // Keeps a value of the program's own with its variables: in checkpoints, and
  // when the program goes on after a loss. All processes have the same in it at
  // the end of each iteration. It outlives the program's last iteration.
  // Returns errors of Registry::Add().
  template <typename T>
  absl::Status Keep(const std::string& name, T* value) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "keep numbers, and arrays and structures of numbers");
    return registry_.Add(
        {.name = name,
         .bytes = absl::MakeSpan(reinterpret_cast<char*>(value), sizeof(T))});
  }

  // Waits for all processes, and gives what was made under the strategy its
  // values: another process's, the newest checkpoint's, or the initial ones.
  // The first step and the first iteration do so. Returns errors of
  // Peers::Begin().
  absl::Status Start();
  // Number of iterations that were done when the program started.
  int64_t committed() const { return committed_; }
  // Says that the program has this number of iterations (Training), which ends
  // the job of a cluster with ps; before Start(). Without it each Run() is an
  // iteration there, and the job ends with the program on all workers.
  void EndAfter(int64_t iterations);
  // Begins an iteration behind `done` ones: Peers::NextIteration().
  absl::StatusOr<std::optional<int64_t>> NextIteration(int64_t done);
  // Ends an iteration: Peers::Commit().
  absl::StatusOr<bool> Commit(const Iteration& iteration);
  // Ends the program: Peers::End().
  absl::Status End(const absl::Status& result);
  // Has the next iteration be the last one. From any thread.
  void Stop() { peers_->Stop(); }

  // What was made under the strategy. For parts of this library.
  Registry& registry() { return registry_; }
  World& world() { return world_; }
  const World& world() const { return world_; }

 private:
  Strategy(std::vector<std::string> names,
           std::vector<std::unique_ptr<Device>> devices, const Options& options,
           std::unique_ptr<Peers> peers);
  absl::Status Open();
  absl::Status RunOnReplicas(
      const std::function<absl::Status(int local)>& step);
  // Does what NextIteration() says where exchanges have several.
  absl::StatusOr<std::optional<int64_t>> NextLocalIteration();
  // Pulls the variables that ps hold.
  absl::Status PullShared();
  // Runs a step that is an iteration of its own.
  absl::Status RunAsIteration(
      const std::function<absl::Status(int local)>& step);

  const Options options_;
  const std::vector<std::string> devices_;
  // Outlives the peers, whose sums may be of its memory.
  Registry registry_;
  const std::unique_ptr<Peers> peers_;
  World world_;
  // All that was declared; null before Start().
  std::unique_ptr<ProgramVariables> variables_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<SharedVariables> shared_;  // null: no ps hold them
  std::optional<LocalIterations> local_;     // nullopt: no local steps
  bool has_iterations_ = false;              // EndAfter() was called
  absl::Status started_;
  int64_t committed_ = 0;
};

// Returns the strategy whose scope is open, or whose step the calling thread is
// in; otherwise the default one, of which there is one.
Strategy& GetStrategy();

// Returns sum / global_batch_size of losses of examples, as
// tf.nn.compute_average_loss: added over all replicas it is their mean.
Tensor ComputeAverageLoss(const Tensor& per_example_loss,
                          int64_t global_batch_size);

// Returns the names of this machine's devices: "cpu", "cuda:0", "cuda:1".
std::vector<std::string> ListDevices();

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_STRATEGY_H_
