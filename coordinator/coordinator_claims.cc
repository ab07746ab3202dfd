// The part of the coordinator that answers claims, and what they are answered
// from in a training set that grows.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "coordinator/coordinator.h"
#include "coordinator/task_message.h"

namespace parasol {

absl::StatusOr<wire::ClaimStepsResponse> Coordinator::ClaimSteps(
    const wire::ClaimStepsRequest& request, absl::Time now) {
  RETURN_IF_ERROR(CheckMessage(request));
  RETURN_IF_ERROR(CheckNewestChief(request.task()));
  RETURN_IF_ERROR(membership_.Renew(request.task(), now));
  RETURN_IF_ERROR(CheckBatches(request));
  RETURN_IF_ERROR(grants_.Take(request, phases_.phase(), now))
      << TaskId::Of(request.task()).ToString();
  Advance(now);
  wire::ClaimStepsResponse response;
  grants_.Answer(request, LookAtGrants(), now, response);
  if (followed_) followed_->files().AddTo(request.known_batches(), response);
  if (response.assignment_version() != request.assignment_version()) {
    AddMembers(response);
  }
  if (!request.has_wait() && !IsNews(request, response) &&
      grants_.claims().IsIdle(request.task().incarnation())) {
    for (std::string& task : AwaitedTaskNames(View())) {
      response.add_awaited_task(std::move(task));
    }
  }
  return response;
}

// Members connect to each other, and show that they belong together: a worker
// says on which port of its own host, not where.
std::string Coordinator::CollectiveAddress(
    const TaskId& id, const Membership::Member& member) const {
  const std::string& spec = options_.tasks.at(id);
  const std::string& said = member.collective_address;
  const size_t colon = said.rfind(':');
  if (colon == std::string::npos) return spec;
  return absl::StrCat(spec.substr(0, spec.rfind(':')), said.substr(colon));
}

void Coordinator::AddMembers(wire::ClaimStepsResponse& response) const {
  if (!options_.is_mirrored) return;
  response.set_group_secret(options_.group_secret);
  for (const auto& [id, member] : membership_.members()) {
    if (id.role != "worker") continue;
    const auto replicas = grants_.plan().ReplicasOf(member.incarnation);
    if (!replicas) continue;
    wire::GroupMember* entry = response.add_member();
    entry->mutable_task()->set_role(id.role);
    entry->mutable_task()->set_index(id.index);
    entry->mutable_task()->set_incarnation(member.incarnation);
    entry->set_address(CollectiveAddress(id, member));
    entry->mutable_replica()->Assign(replicas->begin(), replicas->end());
  }
  // A group without the chief's machine could go on beside another one.
  const bool has_worker0 =
      response.member_size() > 0 && response.member(0).task().index() == 0;
  if (!has_worker0) response.clear_member();
}

// It hears of files from this chief alone.
absl::Status Coordinator::CheckBatches(
    const wire::ClaimStepsRequest& request) const {
  const int64_t batches = followed_ ? followed_->files().batches() : 0;
  if (request.known_batches() >= 0 && request.known_batches() <= batches) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      TaskId::Of(request.task()).ToString(), " knows files up to batch ",
      request.known_batches(), ", but there are ", batches,
      " batches; start this process again"));
}

bool Coordinator::MayTrain() const {
  return phases_.phase() == wire::TRAINING && !orders_.stop_requested();
}

bool Coordinator::Follow(const FollowedLook& look, absl::Time now) {
  const absl::Status taken = followed_->Take(look, now);
  for (const absl::Status* fault : {&look.failure, &taken}) {
    // A job whose steps are all done has no use for it.
    if (phases_.phase() == wire::FINISHING) break;
    if (!fault->ok()) phases_.Fail(*fault, now);
  }
  Advance(now);
  return !followed_->files().IsFull();
}

}  // namespace parasol
