#ifndef PARASOL_TESTS_CLUSTER_FOLLOWED_RUNS_H_
#define PARASOL_TESTS_CLUSTER_FOLLOWED_RUNS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "storage/checkpoint_reader.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

// Helpers for tests of online training that count how often each record was
// trained.
namespace parasol {

// Returns the text of a job whose row of id n counts how often the example with
// "number" n was trained: its label, kCountedLabel, is far away, so the
// gradient of the absolute error is its sign alone. Batches must be whole.
// `train`: the data set, without its batch size.
std::string CountingJob(absl::string_view train, int batch,
                        int checkpoint_every);
inline constexpr int kCountedLabel = 100000000;

// Returns how many of the examples 0, …, records - 1 were trained so many
// times, by that number.
std::map<int, int> CountsOf(const CheckpointReader& checkpoint,
                            int64_t records);

// A cluster of two ps and some workers that follows a set.
class FollowedRunsTest : public ClusterRunsTest {
 protected:
  static constexpr int kBatch = 4;

  // Returns a CountingJob() of kBatch with its defaults.
  static job::Job CountingJobOf(absl::string_view train);

  void StartAll(int workers);
  // Tells all tasks to end, the chief last.
  void StopAll(int workers);
  // Blocks until all records are trained and the job says so.
  void AwaitAll();
  // Returns CountsOf() the newest checkpoint of a run.
  std::map<int, int> Counts(const std::string& run = "run") const;
  std::map<int, int> Once() const { return {{1, static_cast<int>(records_)}}; }

  job::Job job_;
  int64_t records_ = 0;  // number that the job was given
  std::unique_ptr<TestCluster> cluster_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_CLUSTER_FOLLOWED_RUNS_H_
