#include "loop/peers/reported_iteration.h"

namespace parasol {

void ReportIteration(const Iteration& iteration, TrainingReporter& reporter) {
  reporter.AddStep();
  if (iteration.examples > 0) {
    reporter.AddExamples(iteration.examples, iteration.loss_sum,
                         iteration.output_loss_sums);
  } else {
    TrainingReport work;
    work.batches = 1;
    reporter.AddWorkOf(work);
  }
  reporter.AddRecorded(iteration.values);
}

}  // namespace parasol
