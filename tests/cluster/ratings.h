#ifndef PARASOL_TESTS_CLUSTER_RATINGS_H_
#define PARASOL_TESTS_CLUSTER_RATINGS_H_

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace parasol {

// Returns the directory of a data set in which users like items of their own
// parity: train.csv and eval.csv, written once per test process.
std::string RatingsDirectory();

// Returns a job that learns that data set, with its defaults filled in: Wide &
// Deep in small. The wide part's table has an optimizer of its own.
job::Job RatingsJob(int64_t steps);

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_RATINGS_H_
