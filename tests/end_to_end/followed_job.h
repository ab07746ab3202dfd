#ifndef PARASOL_TESTS_END_TO_END_FOLLOWED_JOB_H_
#define PARASOL_TESTS_END_TO_END_FOLLOWED_JOB_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/cluster/followed_runs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {

// Helpers for tests of online training by real processes, which count how often
// each record was trained.
class FollowedJobTest : public testing::Test {
 protected:
  static constexpr int kBatch = 16;

  // Makes an empty folder for the test.
  FollowedJobTest();

  // Starts the job of this data set, as in CountingJob(), or goes on with it.
  void StartWith(const std::string& train);
  // Blocks until all records are trained and the job says so.
  void AwaitAll();
  // Kills a task, which the launcher starts again.
  void Kill(const std::string& task);
  // Tells the launcher to stop. A checkpoint has all that was trained.
  void Stop();
  // Returns CountsOf() the newest checkpoint.
  std::map<int, int> Counts() const;
  std::map<int, int> Once() const { return {{1, static_cast<int>(records_)}}; }
  // Expects that each record was trained, and none more than twice: a worker
  // reports what it has done ten times in a second, and as much is done twice.
  void ExpectOnceOrTwice() const;

  const std::filesystem::path root_;
  int64_t records_ = 0;  // number that the job was given
  std::unique_ptr<LaunchedCluster> cluster_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_END_TO_END_FOLLOWED_JOB_H_
