#ifndef PARASOL_LOOP_TRAINING_H_
#define PARASOL_LOOP_TRAINING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop/strategy.h"

namespace parasol::loop {

// A training of a program, iteration by iteration, that survives what happens
// to its processes: each iteration is done as a whole or not at all.
//
//   int64_t seen = 0;
//   strategy->Keep("seen", &seen);
//   Training training(*strategy, {.iterations = 1000});
//   while (training.Next()) {
//     … Run(), Reduce(), seen += 64 …
//     training.Report(64, loss);
//   }
//   return training.status();
//
// What goes from one iteration to the next are variables, optimizers and what
// the program has given to Strategy::Keep(); anything else has its initial
// value again when a process is lost. Then all processes go on with the last
// iteration that was done, or with the newest checkpoint if none has it.
class Training {
 public:
  struct Options {
    // Ends with this number of iterations, over all runs of the program.
    int64_t iterations = std::numeric_limits<int64_t>::max();
  };

  // `strategy` must outlive this object. A program that calls Start() itself,
  // to go on where its data were, makes its Training before: ps are told then
  // where the job ends.
  Training(Strategy& strategy, const Options& options);

  // Ends the iteration that was under way, and begins the next one. Returns
  // false at the end, when the program was told to stop, and after an error.
  // The first call waits for all processes and restores what there is. All
  // processes call it alike.
  bool Next();

  // The number of iterations that were done before this one, in all runs. Under
  // parameter_server workers take iterations side by side: it is this one's
  // number among all workers' iterations.
  int64_t iteration() const { return iteration_; }
  // Why Next() has returned false: OK at the end, Cancelled if the program was
  // told to stop, AlreadyExists if it has ended in an earlier life of this
  // process and the others are gone.
  const absl::Status& status() const { return status_; }

  // Says how many examples the replicas of all processes had in this iteration,
  // and the mean of their losses: for the log, `parasol status` and curves.
  void Report(int64_t examples, double mean_loss) {
    examples_ += examples;
    loss_sum_ += mean_loss * static_cast<double>(examples);
  }
  // Records a value of this iteration, the same in all processes, as Reduce()
  // returns it; under parameter_server the worker's own. With a checkpoint
  // directory its name is a field of the lines of training.jsonl, which have
  // the mean of the values since the line before, a curve in TensorBoard, and a
  // label of the metric parasol_worker_recorded_value, which is the last value.
  // A name that a line has anyway ("loss"), is empty, has more than 100
  // characters or is no text of one line (UTF-8), and more than 100 names, are
  // an error of the next Next().
  void Record(absl::string_view name, double value);

 private:
  // Return false if the program is to stop.
  absl::StatusOr<bool> Begin();
  absl::StatusOr<bool> End();
  // Takes the next iteration. Returns false if there is none.
  bool Take();

  Strategy& strategy_;
  const Options options_;
  bool has_begun_ = false;
  bool is_over_ = false;
  int64_t iteration_ = 0;
  int64_t examples_ = 0;
  double loss_sum_ = 0;
  std::vector<std::pair<std::string, double>> values_;
  std::set<std::string, std::less<>> names_;  // names of all recorded values
  absl::Status fault_;                        // a fault of Record()'s arguments
  absl::Status status_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_TRAINING_H_
