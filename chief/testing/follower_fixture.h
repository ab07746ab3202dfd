#ifndef PARASOL_CHIEF_TESTING_FOLLOWER_FIXTURE_H_
#define PARASOL_CHIEF_TESTING_FOLLOWER_FIXTURE_H_

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "chief/data_follower.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "coordinator/steps/followed_data.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "ml/model/graph_inputs.h"
#include "proto/job.pb.h"

namespace parasol {

// A DataFollower of a job, in a folder of the test's, and all that it tells of.
class FollowerFixture : public testing::Test {
 protected:
  explicit FollowerFixture(absl::string_view job)
      : directory_(absl::StrCat(
            testing::TempDir(), "/follower_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    job_ = ParseJob(std::string(job), "followed.textproto").value();
    FillDefaults(job_);
  }
  // Ends the follower before what the test's own fixture has goes.
  void TearDown() override { follower_.reset(); }

  // Starts it, or the next chief's, with what `options` has beside the job.
  void StartWith(DataFollower::Options options, Clock& clock = Clock::Real()) {
    const Graph graph = ResolveGraph(job_.model()).value();
    FollowedFiles files = files_;
    FollowedLog log = FollowedLog::Open(directory_, "run", files).value();
    files_ = files;
    options.dataset = job_.train();
    options.inputs = TrainingInputsOf(job_.model(), graph).value();
    options.data_dir = directory_;
    options.on_look = [this](const FollowedLook& look) { return Hear(look); };
    options.interval = absl::Milliseconds(5);
    follower_ = std::make_unique<DataFollower>(std::move(options),
                                               std::move(log), files, clock);
    follower_->Start();
  }

  FollowedLook Last() {
    absl::MutexLock lock(&mu_);
    return look_;
  }
  void Await(const std::function<bool()>& reached) {
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(
        mu_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(60)));
  }

  const std::string directory_;
  job::Job job_;
  absl::Mutex mu_;
  FollowedFiles files_;
  std::vector<std::string> taken_;  // "in/a.csv:3": a file's name and records
  FollowedLook look_;               // the last one
  std::vector<std::string> troubles_;
  size_t room_ = 1000;
  std::unique_ptr<DataFollower> follower_;

 private:
  bool Hear(const FollowedLook& look) {
    absl::MutexLock lock(&mu_);
    for (const auto& file : look.files) {
      EXPECT_OK(files_.Add(file));
      taken_.push_back(absl::StrCat(file.path(), ":", file.records()));
    }
    look_ = look;
    if (!look.trouble.empty()) troubles_.push_back(look.trouble);
    return taken_.size() < room_;
  }
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_TESTING_FOLLOWER_FIXTURE_H_
