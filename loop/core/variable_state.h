#ifndef PARASOL_LOOP_CORE_VARIABLE_STATE_H_
#define PARASOL_LOOP_CORE_VARIABLE_STATE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "loop/core/world.h"
#include "ml/layer/variable_spec.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

class OptimizerState;

// What the replicas' values of a variable become when they are one.
enum class Aggregation { kNone, kSum, kMean, kOnlyFirstReplica };

// When they become one: with each assignment, or only when the variable is read
// outside of a step. kOnRead suits counters that each replica has for itself.
enum class Synchronization { kOnWrite, kOnRead };

// A variable of a program: a value of each replica of this process. Replicas
// that have not assigned values of their own share one.
//
// Used by the program's thread and, in a step, by the replicas' threads, each
// of which reads and writes its own value.
class VariableState {
 public:
  enum class Change { kAssign, kAdd, kSubtract };

  // `world` must outlive the state.
  VariableState(VariableSpec spec, Aggregation aggregation,
                Synchronization synchronization, Tensor value, World& world);

  const VariableSpec& spec() const { return spec_; }
  const TensorShape& shape() const { return shape_; }
  World& world() { return world_; }

  // Returns an error in a step of another strategy.
  absl::Status CheckWorld() const;

  // Returns the value of the replica whose step the calling thread is in, or
  // what the aggregation makes of all values outside of steps. Other processes
  // are asked where replicas have values of their own: all read then.
  Tensor Read();
  // Returns the value of one replica of this process.
  const Tensor& value(int local) const { return values_[local]; }

  // In a step: changes this replica's value by `by`; where the aggregation is
  // not kNone and the synchronisation is kOnWrite, changes all replicas' by
  // what the aggregation makes of all `by`. Outside: changes all values.
  //   InvalidArgument  a shape or dtype does not fit.
  //   FailedPrecondition  a sum of replicas can't be changed by an amount, or
  //                       ps hold the variable, and an optimizer changes it
  //                       there, or the job is complete.
  absl::Status Apply(Change change, const Tensor& by);

  // Returns the value that goes into checkpoints: what Read() returns outside
  // of steps, or the first replica's where that is an error.
  Tensor ReadSaved();

  // Says that ps hold the variable, as the one with this number. All workers
  // read and change it then: steps use what was pulled when they began, and a
  // change goes to the ps at once.
  void Share(size_t number) { number_ = number; }
  bool is_shared() const { return number_.has_value(); }
  size_t number() const { return *number_; }
  // The optimizer that trains the variable where it is shared; null: none.
  const OptimizerState* trainer() const { return trainer_; }
  void SetTrainer(const OptimizerState* trainer) { trainer_ = trainer; }
  // While a shared variable is held, its changes stay in this process, and so
  // does what is read, until an exchange takes them to the ps.
  void Hold(bool holds) { is_held_ = holds; }
  bool is_held() const { return is_held_; }
  // Says that the variable is a statistic of the examples, a moving mean or
  // variance: the changes of several workers that hold it are averaged, where
  // changes of other variables are added up.
  void BeStatistic() { is_statistic_ = true; }
  bool is_statistic() const { return is_statistic_; }
  // Returns true if each replica has a value for itself.
  bool has_own_values() const {
    return synchronization_ == Synchronization::kOnRead ||
           aggregation_ == Aggregation::kNone;
  }

  // Makes `value` the value of all replicas.
  void SetAll(const Tensor& value);
  // Makes `value` what Read() returns outside of steps.
  void Restore(const Tensor& value);

 private:
  // Returns what the aggregation makes of a value of each replica.
  Tensor Aggregated(std::vector<Tensor> locals);
  absl::Status ApplyTogether(int local, Change change, const Tensor& by);
  absl::Status ApplyOutside(Change change, const Tensor& by);
  absl::Status CheckFits(const Tensor& by) const;
  absl::Status CheckMayChange(Change change) const;
  // Returns true if ps have what is read, and get each change at once.
  bool is_with_ps() const { return is_shared() && !is_held_; }
  // Changes the value that ps hold.
  absl::Status ApplyShared(Change change, const Tensor& by);

  const VariableSpec spec_;
  const TensorShape shape_;
  const Aggregation aggregation_;
  const Synchronization synchronization_;
  World& world_;
  std::vector<Tensor> values_;    // index: replica of this process
  std::optional<size_t> number_;  // nullopt: no ps holds it
  const OptimizerState* trainer_ = nullptr;
  bool is_held_ = false;
  bool is_statistic_ = false;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_VARIABLE_STATE_H_
