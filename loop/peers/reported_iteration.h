#ifndef PARASOL_LOOP_PEERS_REPORTED_ITERATION_H_
#define PARASOL_LOOP_PEERS_REPORTED_ITERATION_H_

#include "loop/peers/peers.h"
#include "worker/training_report.h"

namespace parasol {

// Adds an iteration that a process has ended to its report: a step and a batch,
// though the program may count no examples, and the values for the record.
void ReportIteration(const Iteration& iteration, TrainingReporter& reporter);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_REPORTED_ITERATION_H_
