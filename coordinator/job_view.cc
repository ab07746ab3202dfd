#include "coordinator/job_view.h"

#include <algorithm>
#include <utility>

#include "coordinator/absences.h"

namespace parasol {
namespace {

// Number of names in one answer.
constexpr size_t kMaxNamedInAnswer = 16;
// Time for which a job waits for an evaluation before the evaluator is named:
// under max_lag: 0 it waits for each one.
constexpr absl::Duration kEvaluatorNamed = absl::Seconds(5);

std::vector<std::string> NamesForPeople(const CoordinatorOptions& options,
                                        const std::vector<TaskId>& tasks) {
  std::vector<std::string> names;
  for (const TaskId& task : tasks) {
    std::string name = NameOf(options, task);
    if (std::count(names.begin(), names.end(), name) == 0) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> ReturningWorkers(const JobView& job) {
  std::vector<std::string> names;
  for (const TaskId& id : job.membership.Absent("worker")) {
    names.push_back(id.ToString());
  }
  if (!job.look.ends_early) return names;
  for (const auto& [id, member] : job.membership.members()) {
    const bool is_busy =
        member.alive && !job.grants.claims().IsIdle(member.incarnation);
    if (id.role == "worker" && is_busy) names.push_back(id.ToString());
  }
  return names;
}

std::vector<std::string> WorkersAt(std::vector<uint64_t> incarnations,
                                   const Membership& membership) {
  std::vector<std::string> names;
  std::sort(incarnations.begin(), incarnations.end());
  for (const auto& [id, member] : membership.members()) {
    if (names.size() == kMaxNamedInAnswer) break;
    if (id.role == "worker" &&
        std::binary_search(incarnations.begin(), incarnations.end(),
                           member.incarnation)) {
      names.push_back(id.ToString());
    }
  }
  return names;
}

}  // namespace

// The part of worker/0 that holds variables leaves with the worker, and a
// worker/0 that is told to end awaits the chief beside it. A worker that may go
// as it likes, and is lost, hardly comes back to be told of the end.
std::vector<TaskId> StayingTasks(const CoordinatorOptions& options,
                                 const Membership& membership) {
  std::vector<TaskId> staying = membership.Staying();
  std::erase_if(staying, [&](const TaskId& id) {
    return IsState(options, id) ||
           (options.has_elastic_workers && id.role == "worker" &&
            membership.members().at(id).lost);
  });
  return staying;
}

std::vector<std::string> MissingTaskNames(const JobView& job) {
  if (job.phases.HasEnded()) return {};
  return NamesForPeople(
      job.options,
      MissingTasks(job.membership, job.phases.phase(), job.needs_all_workers));
}

std::vector<std::string> AwaitedTaskNames(const JobView& job) {
  if (job.phases.HasEnded()) return {};
  if (job.grants.AwaitsReturns(job.look)) return ReturningWorkers(job);
  const EvaluationLag& lag = job.evaluations.lag();
  if (lag.awaited() && lag.waited() >= kEvaluatorNamed) {
    std::vector<std::string> names;
    for (const auto& [id, address] : job.options.tasks) {
      if (id.role == "evaluator") names.push_back(id.ToString());
    }
    return names;
  }
  std::vector<uint64_t> awaited = job.grants.plan().Awaited();
  const std::vector<uint64_t> still = job.grants.claims().Still(job.last_tick);
  awaited.insert(awaited.end(), still.begin(), still.end());
  return WorkersAt(std::move(awaited), job.membership);
}

std::vector<std::string> StayingTaskNames(const JobView& job) {
  if (!job.phases.HasEnded()) return {};
  return NamesForPeople(job.options, StayingTasks(job.options, job.membership));
}

Trouble TroubleOf(const JobView& job) {
  if (!job.orders.trouble().text.empty() || job.grants.ArePushed()) {
    return job.orders.trouble();
  }
  return {absl::StrCat(
              "workers say that they have completed ",
              job.grants.plan().completed_grants(),
              " steps, and that is more steps than any ps has applied: none "
              "are granted until a ps has applied as many"),
          wire::Finding::WORKER};
}

}  // namespace parasol
