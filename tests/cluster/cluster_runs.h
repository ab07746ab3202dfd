#ifndef PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_
#define PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"

// For tests that compare the checkpoints of several runs.
namespace parasol {

class ClusterRunsTest : public testing::Test {
 protected:
  // Where the run that this test calls `run` keeps its checkpoints.
  static std::filesystem::path Directory(const std::string& run);
  // The last of them, which must be there.
  static std::unique_ptr<CheckpointReader> Newest(const std::string& run);
};

// The values of all variables, by name.
std::map<std::string, std::vector<float>> ReadVariables(
    const CheckpointReader& checkpoint);

struct Replicas {
  int aggregate = 0;
  int total = 0;
};

// Those of a lost worker are computed by others.
void MakeSynchronous(const Replicas& replicas, job::Job& job);

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_
