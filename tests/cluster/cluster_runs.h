#ifndef PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_
#define PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"

// Helpers for tests that compare the checkpoints of several runs.
namespace parasol {

class ClusterRunsTest : public testing::Test {
 protected:
  // Returns the checkpoint directory of the run that this test calls `run`.
  static std::filesystem::path Directory(const std::string& run);
  // Opens the run's newest checkpoint, which must exist.
  static std::unique_ptr<CheckpointReader> Newest(const std::string& run);
};

// Returns the values of all variables, by name.
std::map<std::string, std::vector<float>> ReadVariables(
    const CheckpointReader& checkpoint);

// Everything that training changes, whatever shards hold it.
struct Trained {
  std::map<std::string, std::vector<float>> variables;
  // Values and slots of all rows, by table and id.
  std::map<std::string, std::map<uint64_t, std::vector<float>>> tables;
  // Number of updates that each table has had, at each shard.
  std::map<std::string, std::vector<int64_t>> updates;

  friend bool operator==(const Trained& a, const Trained& b) {
    return a.variables == b.variables && a.tables == b.tables;
  }
};

Trained ReadTrained(const CheckpointReader& checkpoint);

struct Replicas {
  int aggregate = 0;
  int total = 0;
};

// Makes `job` synchronous, with these numbers of replicas. Other workers
// compute the replicas of a lost worker.
void MakeSynchronous(const Replicas& replicas, job::Job& job);

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_CLUSTER_RUNS_H_
