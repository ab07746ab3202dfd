#include "tests/simulation/group/simulated_endpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace parasol::simulation {
namespace {

// As in cluster/collective/socket_endpoint.cc, but that a rank calls less
// often: a schedule has fewer events.
constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr absl::Duration kCallLimit = absl::Seconds(2);

absl::Status ResultOf(HelloAnswer answer) {
  switch (answer) {
    // Whoever is of the group has its secret.
    case HelloAnswer::kChallenge:
    case HelloAnswer::kWelcome:
      return absl::OkStatus();
    case HelloAnswer::kTooEarly:
      return absl::UnavailableError("has not joined this group yet");
    case HelloAnswer::kOver:
      return absl::FailedPreconditionError("has joined a later group");
    case HelloAnswer::kRefused:
    case HelloAnswer::kOtherVersion:
      break;
  }
  return absl::FailedPreconditionError("refuses this rank");
}

absl::Status MissingError(const CollectiveGroup& group,
                          const std::map<int, std::string>& missing) {
  std::vector<std::string> names;
  for (const auto& [rank, why] : missing) {
    names.push_back(absl::StrCat(group.NameOf(rank), ": ", why));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("not there: ", absl::StrJoin(names, "; ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> SimulatedEndpoint::Join(
    const CollectiveGroup& group, absl::Duration limit) {
  RETURN_IF_ERROR(CheckGroup(group));
  if (threads_.is_abandoned()) return absl::CancelledError("gone");
  if (group_ && group.epoch <= group_->epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("has joined a group of epoch ", group_->epoch));
  }
  if (newest_ != nullptr) {
    std::exchange(newest_, nullptr)
        ->Leave(absl::CancelledError("a newer group has its place"));
  }
  group_ = group;
  called_.clear();
  points_.Reach();
  const absl::Time deadline = threads_.Now() + limit;
  Wires wires;
  while (true) {
    std::map<int, std::string> missing;
    for (auto& [rank, wire] : std::exchange(called_, {})) {
      wires[rank] = std::move(wire);
    }
    const absl::Duration left = deadline - threads_.Now();
    RETURN_IF_ERROR(
        CallMissing(group, std::min(left, kCallLimit), wires, missing));
    if (missing.empty()) break;
    if (threads_.Now() >= deadline) return MissingError(group, missing);
    const auto is_cancelled = [&] {
      return cancelled_ >= group.epoch || threads_.is_abandoned();
    };
    if (threads_.Await(is_cancelled, kPause)) {
      return absl::CancelledError("the join was cancelled");
    }
  }
  auto collective = std::make_unique<SimulatedCollective>(
      world_, process_, threads_, points_, group, std::move(wires),
      [this, epoch = group.epoch] {
        const bool is_newest =
            newest_ != nullptr && newest_->group().epoch == epoch;
        if (is_newest) newest_ = nullptr;
      });
  newest_ = collective.get();
  return collective;
}

absl::Status SimulatedEndpoint::CallMissing(
    const CollectiveGroup& group, absl::Duration limit, Wires& wires,
    std::map<int, std::string>& missing) {
  std::map<int, std::shared_ptr<Call>> calls;
  for (int rank = 0; rank < static_cast<int>(group.ranks.size()); ++rank) {
    if (rank == group.own_rank || wires.contains(rank)) continue;
    if (rank < group.own_rank) {
      calls[rank] = CallRank(group, rank);
    } else {
      missing[rank] = "has not called";
    }
  }
  const auto all_answered = [&] {
    return threads_.is_abandoned() ||
           std::all_of(calls.begin(), calls.end(),
                       [](const auto& call) { return call.second->is_over; });
  };
  threads_.Await(all_answered, limit);
  absl::Status failure;
  for (auto& [rank, call] : calls) {
    if (!std::exchange(call->is_over, true)) {
      missing[rank] = "no answer";
    } else if (call->result.ok()) {
      wires[rank] = std::move(call->wire);
    } else if (absl::IsUnavailable(call->result)) {
      missing[rank] = std::string(call->result.message());
    } else {
      failure.Update(call->result);
    }
  }
  return failure;
}

std::shared_ptr<SimulatedEndpoint::Call> SimulatedEndpoint::CallRank(
    const CollectiveGroup& group, int rank) {
  auto call = std::make_shared<Call>();
  SimulatedEndpoint* const to = lookup_(group.ranks[rank].address);
  if (to == nullptr || threads_.is_abandoned()) {
    call->is_over = true;
    call->result = absl::UnavailableError("connect: refused");
    return call;
  }
  world_.Send(process_, to->process_,
              [this, to, hello = RankHello::Of(group, rank), call] {
                to->Answer(*this, hello, call);
              });
  return call;
}

void SimulatedEndpoint::Answer(SimulatedEndpoint& caller,
                               const RankHello& hello,
                               const std::shared_ptr<Call>& call) {
  points_.Reach();
  const absl::Status result = ResultOf(AnswerTo(hello, group_));
  std::shared_ptr<std::unique_ptr<WireEnd>> theirs;
  if (result.ok()) {
    auto ends = WireEnd::Connect(world_, points_, process_, caller.process_);
    called_[hello.from] = std::move(ends.first);
    theirs = std::make_shared<std::unique_ptr<WireEnd>>(std::move(ends.second));
  }
  world_.Send(process_, caller.process_, [result, theirs, call] {
    if (std::exchange(call->is_over, true)) return;
    call->result = result;
    if (theirs != nullptr) call->wire = std::move(*theirs);
  });
}

void SimulatedEndpoint::Abandon() {
  called_.clear();
  if (newest_ != nullptr) newest_->Abandon();
}

}  // namespace parasol::simulation
