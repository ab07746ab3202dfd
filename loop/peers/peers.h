#ifndef PARASOL_LOOP_PEERS_PEERS_H_
#define PARASOL_LOOP_PEERS_PEERS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "cluster/job/training_end.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"

namespace parasol {

class ParameterStore;
class TrainingReporter;

// What a program says of an iteration that it ends.
struct Iteration {
  // Number of iterations that are done with it: one more than Begin() or the
  // Commit() before had.
  int64_t step = 0;
  // The examples of this process's replicas, and the sum of their losses.
  int64_t examples = 0;
  double loss_sum = 0;
  // Sums of the losses of the job's named outputs, in the order of the job's
  // model; none, or one for each.
  std::vector<double> output_loss_sums = {};
  // Number of iterations that the program is to have in all; 0: not known.
  int64_t end_step = 0;
  // Values by name for the record, each perhaps several times; the same in all
  // processes.
  std::vector<std::pair<std::string, double>> values = {};
};

// The processes of a program that has a training loop of its own. All run the
// same program and make the same calls in the same order; process r computes
// the replicas r * n, ..., r * n + n - 1. Values go from one iteration to the
// next in a ParameterStore that each process has.
//
// A call in which another process turns out to be lost may not return: the
// process starts anew, and its Begin() returns the iterations that all have
// committed. What is in a store and was not committed is gone then, so a
// program has nothing else that an iteration changes and a later one needs.
//
// Errors end the program in all processes: give the first one to End().
//   InvalidArgument  another process makes another call, or the same one with
//                    other sizes; the message has both.
//   Cancelled        this process was told to stop, or another one.
//   any              the error that another process has given to End(); the
//                    message names the process.
//
// Used by one thread, but for Stop().
class Peers {
 public:
  virtual ~Peers() = default;

  // The index of this process among those whose replicas are in step, from 0
  // on.
  virtual int rank() const = 0;
  virtual int num_processes() const = 0;
  // The index of this process among all that run the program, and their number:
  // more than those in step where ps have the variables.
  virtual int place() const { return rank(); }
  virtual int num_places() const { return num_processes(); }

  // Says after how many iterations the program ends. Call it before Begin(),
  // which knows then whether there is anything left to do.
  void EndAfter(int64_t iterations) { end_ = std::min(iterations, kEndless); }

  // Waits until all processes are there, and gives `store` the values to go on
  // with: another process's, the newest checkpoint's, or those that it has if
  // there are none. Call it first. `parts`: lines about what the program has
  // besides, such as layers of models. Returns the number of committed
  // iterations.
  //   InvalidArgument    another process has other variables, optimizers or
  //                      parts, or the checkpoint has other variables; the
  //                      message says which.
  //   DeadlineExceeded   processes are missing; names them.
  //   AlreadyExists      the program has ended, in the life of a process before
  //                      this one, and the others are gone; `store` has the
  //                      values of its end. End() returns OK.
  virtual absl::StatusOr<int64_t> Begin(
      ParameterStore& store, const std::vector<std::string>& parts) = 0;
  absl::StatusOr<int64_t> Begin(ParameterStore& store) {
    return Begin(store, {});
  }

  // Begins to add the contributions of all replicas of all processes, in
  // ascending order of the replicas, to the last bit the same whoever brings
  // which. `contributions`: one of each replica of this process, ascending,
  // each with as many elements as `sum`, which may be the memory of one of
  // them. All memory must stay until Await(). `what` names the sum in errors.
  virtual void BeginAllReduce(absl::string_view what,
                              std::vector<Contribution> contributions,
                              absl::Span<float> sum) = 0;
  // Waits for all sums that were begun.
  virtual absl::Status Await() = 0;
  absl::Status AllReduce(absl::string_view what,
                         std::vector<Contribution> contributions,
                         absl::Span<float> sum) {
    BeginAllReduce(what, std::move(contributions), sum);
    return Await();
  }

  // Returns the bytes of each process, in the order of their ranks. They may
  // be of different lengths.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(
      absl::string_view what, absl::string_view own) = 0;

  // The variables of the store as ps hold them, from Begin() to the job's end;
  // null: each process updates its own. The numbers are the store's.
  virtual TrainingParameters* shared() { return nullptr; }

  // The local steps that the program makes between exchanges with the ps, as
  // ParseLocalSteps() returns them: what is an iteration here is an exchange
  // then. Null: it makes none.
  virtual const job::LocalSteps* local_steps() const { return nullptr; }

  // Told of the parts of an iteration, each within the program's own work;
  // null: nobody asks for them.
  virtual TrainingReporter* reporter() { return nullptr; }

  // Begins an iteration: returns the number of those before it, which is `done`
  // unless ps have the variables; then the chief grants each iteration to one
  // worker, and again if that is lost. Returns nullopt when there are no more.
  virtual absl::StatusOr<std::optional<int64_t>> NextIteration(int64_t done) {
    return done < end_ ? std::optional<int64_t>(done) : std::nullopt;
  }
  // Ends an iteration: `store` has its values, which are from now on those that
  // all go on with. A checkpoint may be written. Returns true if the program
  // is to go on, and false when it was told to stop or has come to the job's
  // end: all processes alike.
  virtual absl::StatusOr<bool> Commit(const Iteration& iteration,
                                      ParameterStore& store) = 0;

  // Asked within an iteration that takes long: returns false if the program was
  // told to stop, as Commit() does.
  virtual absl::StatusOr<bool> GoesOn() { return true; }

  // Ends this process's part, with the error of the program, if there is one:
  // the others end with it. Otherwise waits for the others, and for a
  // checkpoint of the last iteration that was committed. Call it last. Returns
  // how the program ends, for ExitWith(): `result`, or an error of its own.
  virtual absl::Status End(const absl::Status& result) = 0;

  // Has the next Commit() return false in all processes, or Begin() fail in
  // all that it has come together by now. What was committed is in a checkpoint
  // then. May be called twice, from any thread.
  virtual void Stop() = 0;

 protected:
  int64_t end() const { return end_; }

 private:
  int64_t end_ = kEndless;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_PEERS_H_
