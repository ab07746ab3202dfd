#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_AUDITOR_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_AUDITOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "tests/simulation/auditor.h"
#include "tests/simulation/group/group_model.h"
#include "tests/simulation/schedule.h"
#include "worker/group/state/group_state.h"

namespace parasol::simulation {

// Compares the state of each worker, whenever it changes, and each checkpoint
// with the state of one process that makes all steps once; and the steps of
// each group with the earlier groups' steps.
class GroupAuditor {
 public:
  using Version = GroupState::Version;

  GroupAuditor(const Schedule& schedule, job::Job job, Auditor& auditor);

  // A chief has named a group.
  void Named(const wire::ClaimStepsResponse& answer);
  // The state of a worker's process has changed.
  void StateChanges(const std::string& worker, const Version& before,
                    const Version& after, const GroupContents& contents);
  void Committed(const Checkpoint& checkpoint);
  void CheckpointFails();
  void Evaluated(const Evaluation& evaluation);
  // The job is complete.
  void Ended();
  // A worker has waited for a long time, for these, as it says.
  void Waits(const std::string& worker,
             const std::vector<std::string>& for_whom);

 private:
  struct Group {
    std::set<uint64_t> members;
    uint64_t worker0 = 0;
    // The steps that the group was seen to have made.
    bool has_made = false;
    int64_t first = 0;
    int64_t last = 0;
  };

  // Returns true if these are the contents after a step.
  bool IsRight(int64_t step, const GroupContents& contents);
  // Returns true if `contents`, after an earlier step, may go on as this
  // version, and follows them from now on. That is so where the variables of
  // later steps were lost with all workers, and a chief that is apart, or has
  // heard of a worker 0 that was replaced, remembers these steps.
  bool GoesOn(const Version& version, const GroupContents& contents);
  void CheckGroups(const std::string& worker, const Version& made);
  // Raises the step up to which evaluation.max_lag may have allowed steps.
  void AllowByLag();
  void CheckLag(const std::string& worker, int64_t step);
  void CheckAlike(const std::string& worker, const Version& version,
                  const GroupContents& contents);

  const Shape& shape_;
  const bool may_go_on_;
  const job::Job job_;
  Auditor& auditor_;
  std::vector<std::unique_ptr<GroupReference>> references_;
  std::map<int64_t, Group> groups_;  // key: epoch
  std::map<Version, GroupContents> seen_;
  const bool has_lag_;
  // True if a chief may restart: it waits for the evaluation of the checkpoint
  // that it resumes from, not for evaluations of earlier ones.
  const bool may_forget_;
  // True while no checkpoint can be written: the job waits for none then.
  bool is_failing_ = false;
  bool has_failed_ = false;
  std::set<int64_t> due_;  // steps of checkpoints that are to be evaluated
  std::set<int64_t> evaluated_;
  int64_t allowed_ = 0;
  int64_t reached_ = 0;  // the newest step that a group has made
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_AUDITOR_H_
