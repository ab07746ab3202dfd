#ifndef PARASOL_WORKER_GROUP_TESTING_ASSIGNMENTS_H_
#define PARASOL_WORKER_GROUP_TESTING_ASSIGNMENTS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/chief.pb.h"

namespace parasol::group_testing {

// Assigns replicas to workers; each change is a new version. Thread-safe.
class Assignments {
 public:
  // `shares`: each worker's replicas.
  void Assign(const std::map<int, std::vector<int>>& shares) {
    absl::MutexLock lock(&mu_);
    answer_.Clear();
    answer_.set_assignment_version(++version_);
    for (const auto& [worker, replicas] : shares) {
      wire::GroupMember* member = answer_.add_member();
      member->mutable_task()->set_role("worker");
      member->mutable_task()->set_index(worker);
      member->mutable_task()->set_incarnation(100 + worker);
      member->set_address(absl::StrCat("h:", worker));
      member->mutable_replica()->Assign(replicas.begin(), replicas.end());
    }
    shares_ = shares;
  }
  // Answers a worker's claim, as the chief does.
  wire::ClaimStepsResponse Claim(int64_t broken) {
    absl::MutexLock lock(&mu_);
    if (broken == version_) answer_.set_assignment_version(++version_);
    return answer_;
  }
  // Number of the newest assignment: one more for each group that has ended.
  int64_t version() {
    absl::MutexLock lock(&mu_);
    return version_;
  }
  std::vector<int> ReplicasOf(int worker) {
    absl::MutexLock lock(&mu_);
    return shares_[worker];
  }

 private:
  absl::Mutex mu_;
  int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  wire::ClaimStepsResponse answer_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::vector<int>> shares_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol::group_testing

#endif  // PARASOL_WORKER_GROUP_TESTING_ASSIGNMENTS_H_
