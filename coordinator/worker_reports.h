#ifndef PARASOL_COORDINATOR_WORKER_REPORTS_H_
#define PARASOL_COORDINATOR_WORKER_REPORTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cluster/progress/recorded_values.h"
#include "coordinator/steps/epoch_losses.h"
#include "proto/chief.pb.h"

namespace parasol {

// The last report of each live worker about its training. Pure.
class WorkerReports {
 public:
  // The run begins, or goes on, at `first_step`.
  explicit WorkerReports(int64_t first_step) : epochs_(first_step) {}

  // Takes a worker process that no chief has known before: all that it reports
  // is counted here.
  void Begin(uint64_t incarnation) { totals_.try_emplace(incarnation); }
  // Keeps the values of a heartbeat. Values that the heartbeat lacks, or that
  // are not finite, stay as they were.
  void Keep(const wire::HeartbeatRequest& heartbeat);
  void Forget(int worker);

  // Returns the mean of the workers' losses; nullopt if none has reported one.
  std::optional<double> loss() const;
  // Returns the examples per second of all workers together.
  double examples_per_second() const;
  // Return the sum of the losses, and the number, of the examples that workers
  // have computed since they began, or since their first report here.
  double loss_sum() const { return loss_sum_; }
  // One for each of the model's named outputs; empty before a report has them.
  const std::vector<double>& output_loss_sums() const {
    return output_loss_sums_;
  }
  int64_t loss_examples() const { return loss_examples_; }
  // Returns the totals of the values that workers have recorded meanwhile.
  const RecordedTotals& recorded() const { return recorded_; }
  EpochLosses& epochs() { return epochs_; }
  const EpochLosses& epochs() const { return epochs_; }

 private:
  // The totals that a worker process has reported.
  struct Totals {
    double loss_sum = 0;
    std::vector<double> output_loss_sums = {};
    int64_t examples = 0;
    std::map<int64_t, EpochLosses::Sums> epochs = {};
    RecordedTotals recorded = {};
  };

  void Count(const wire::HeartbeatRequest& heartbeat);
  void CountOutputs(const std::vector<double>& known,
                    const std::vector<double>& now);
  // Takes the totals of recorded values; counts what is new if `counts`.
  void CountRecorded(const wire::HeartbeatRequest& heartbeat, bool counts,
                     RecordedTotals& known);
  // Takes the totals of epochs; counts what is new if `counts`.
  void CountEpochs(const wire::HeartbeatRequest& heartbeat, bool counts,
                   std::map<int64_t, EpochLosses::Sums>& known);

  struct Report {
    std::optional<double> loss;
    double examples_per_second = 0;
  };
  std::map<int, Report> reports_;      // key: worker index
  std::map<uint64_t, Totals> totals_;  // key: incarnation
  double loss_sum_ = 0;
  std::vector<double> output_loss_sums_;
  int64_t loss_examples_ = 0;
  RecordedTotals recorded_;
  EpochLosses epochs_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_WORKER_REPORTS_H_
