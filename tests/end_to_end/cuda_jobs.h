#ifndef PARASOL_TESTS_END_TO_END_CUDA_JOBS_H_
#define PARASOL_TESTS_END_TO_END_CUDA_JOBS_H_

#include <string>
#include <vector>

#include "tests/end_to_end/launched_cluster.h"

namespace parasol {

// Returns a cluster with a job that learns drawn digits with a convolution, or
// one that learns from rows of sparse tables; both are small enough for a GPU
// that is played by a CPU, and have an accuracy above kLearned after
// kStepsToLearn steps. Workers and evaluator compute on `device`.
inline constexpr double kLearned = 0.65;
inline constexpr int kStepsToLearn = 300;
LaunchedCluster::Options DigitsOn(const std::string& device);
LaunchedCluster::Options TablesOn(const std::string& device);

// Returns the path of a worker binary that meets `fault`
// (PARASOL_CUDA_ON_HOST_FAULT) as worker 1: in each process of worker 1, or
// only in the first.
std::string WorkerWithFault(const std::string& fault, bool only_first);

// Fails the test unless the job has ended well, after `steps` steps.
void ExpectLearned(const LaunchedCluster::Result& result, int steps);

}  // namespace parasol

#endif  // PARASOL_TESTS_END_TO_END_CUDA_JOBS_H_
