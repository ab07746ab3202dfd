#include "loop/peers/group_peers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/collective/collective_group.h"
#include "loop/peers/contributions.h"
#include "loop/peers/copied_values.h"
#include "loop/peers/ended_program.h"
#include "loop/peers/iteration_message.h"
#include "loop/peers/kept_state.h"
#include "loop/peers/program_description.h"
#include "loop/peers/program_status.h"
#include "loop/peers/reported_iteration.h"
#include "worker/group/state/state_transfer.h"
#include "worker/shown/lone_status.h"
#include "worker/shown/peer_heartbeats.h"
#include "worker/training_report.h"

namespace parasol {
namespace {

// A process is a member of one group at a time; those that are over are told
// from it by their connections, which have ended.
constexpr int64_t kGroup = 1;
constexpr absl::Duration kWaitLogInterval = absl::Seconds(10);
constexpr absl::Duration kPause = absl::Milliseconds(50);

// Number of attempts to meet after which the others may be gone for good.
constexpr int kAttempts = 3;

// Returns true if another attempt to meet may go well: a process is missing, or
// is just starting anew.
bool IsMissed(const absl::Status& met) {
  return absl::IsUnavailable(met) || absl::IsDeadlineExceeded(met);
}

absl::Status NotThere(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": the processes have not met yet, or the program has ended"));
}

}  // namespace

GroupPeers::GroupPeers(Options options, Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

GroupPeers::~GroupPeers() {
  StopTelling();
  Leave();
  ShowChief(options_.settings, nullptr);
}

void GroupPeers::TellFirst() {
  const ProgramStatus* const status = options_.settings.status;
  PeerHeartbeats* const heartbeats =
      status == nullptr ? nullptr : status->heartbeats();
  if (heartbeats == nullptr) return;
  heartbeats->ShowThisThreadFirst();
  own_reporter_ = std::make_unique<TrainingReporter>(
      clock_, /*hooks=*/nullptr, &heartbeats->recorder(), "training");
  heartbeats->Follow([this](wire::HeartbeatRequest& request) {
    ReportTraining(own_reporter_->Take(), told_, request);
  });
}

void GroupPeers::StopTelling() {
  if (own_reporter_ == nullptr) return;
  options_.settings.status->heartbeats()->Follow(nullptr);
}

CollectiveGroup GroupPeers::Group() const {
  CollectiveGroup group;
  group.epoch = kGroup;
  group.secret = options_.secret;
  group.own_rank = options_.rank;
  for (int rank = 0; rank < num_processes(); ++rank) {
    CollectiveRank& member = group.ranks.emplace_back();
    member.address = options_.addresses[rank];
    for (int i = 0; i < options_.replicas; ++i) {
      member.replicas.push_back(rank * options_.replicas + i);
    }
  }
  return group;
}

absl::StatusOr<int64_t> GroupPeers::Begin(
    ParameterStore& store, const std::vector<std::string>& parts) {
  store_ = &store;
  parts_ = parts;
  state_ = std::make_unique<GroupState>(store, clock_);
  TellFirst();
  if (options_.kept.is_open()) {
    const absl::Status taken = TakeKeptState(options_.kept.get(), *state_);
    if (!taken.ok()) LOG(WARNING) << taken.message();
    options_.kept = Descriptor();
  }
  step_ = state_->version().step;
  {
    absl::MutexLock lock(&mu_);
    is_meeting_ = true;
    stops_ = stop_requested_.load();
  }
  RETURN_IF_ERROR(Meet());
  EndMeeting();
  RETURN_IF_ERROR(state_->Read([&](ParameterStore& committed) {
    return CopyValues(committed.variables(), store.variables());
  }));
  step_ = state_->version().step;
  if (chief_ != nullptr) {
    HandToChief();
  } else if (own_reporter_ != nullptr) {
    own_reporter_->Begin(StepPart::kCompute, clock_.Now());
  }
  return step_;
}

absl::Status GroupPeers::Meet() {
  const absl::Time begun = clock_.Now();
  while (true) {
    const absl::Status met = TryToMeet();
    if (met.ok()) return met;
    if (absl::IsCancelled(met)) return met;
    if (stop_requested_) return absl::CancelledError("stopped while waiting");
    if (!IsMissed(met)) return EndAll(met);
    Leave();
    LOG_EVERY(INFO, kWaitLogInterval) << "waiting for all " << num_processes()
                                      << " workers: " << met.message();
    const absl::Duration waited = clock_.Now() - begun;
    if (waited >= kAttempts * options_.join_limit) {
      has_ended_ = LoadEndedProgram(options_.settings.checkpoint_directory,
                                    end(), *store_);
    }
    if (has_ended_) {
      return absl::AlreadyExistsError(
          absl::StrCat("the program has ended with iteration ", end()));
    }
    if (waited >= options_.peer_timeout) return GiveUpMeeting(met);
    clock_.Pause(kPause);
  }
}

absl::Status GroupPeers::GiveUpMeeting(const absl::Status& met) {
  const absl::Status saved = SaveCommitted();
  if (!saved.ok()) LOG(WARNING) << saved.message();
  return absl::DeadlineExceededError(absl::StrCat(
      "not all ", num_processes(), " workers were there within ",
      absl::FormatDuration(options_.peer_timeout), ": ", met.message()));
}

absl::Status GroupPeers::TryToMeet() {
  ASSIGN_OR_RETURN(endpoint_, options_.listen());
  ASSIGN_OR_RETURN(collective_, endpoint_->Join(Group(), options_.join_limit));
  {
    absl::MutexLock lock(&mu_);
    meeting_ = collective_.get();
  }
  if (stop_requested_) return absl::CancelledError("stopped while waiting");
  watch_ = std::make_unique<PeerWatch>(
      PeerWatch::Options{.awaited = [this] { return Awaited(); },
                         .give_up = [this] { GiveUp(); },
                         .limit = options_.peer_timeout},
      clock_);
  ASSIGN_OR_RETURN(
      const std::vector<std::string> programs,
      Gather("begin", DescribeProgram(*store_, options_.replicas, parts_)));
  RETURN_IF_ERROR(CheckSameProgram(programs));
  if (options_.rank == 0) {
    RETURN_IF_ERROR(StartChief());
  }
  watch_->Begin("begin");
  const absl::Status agreed = AgreeOnState(
      *collective_, *state_, [this] { return !stop_requested_; }, clock_);
  watch_->End();
  return agreed;
}

// Values that another process has kept are later than a checkpoint's.
absl::Status GroupPeers::StartChief() {
  int64_t step = 0;
  if (chief_ == nullptr && !options_.settings.checkpoint_directory.empty()) {
    auto chief = std::make_unique<ProgramChief>(
        ProgramChief::Options{
            .job = JobOfProgram(store_->job(), options_.settings),
            .replicas = options_.replicas * num_processes(),
            .checkpoint_timeout = options_.settings.checkpoint_timeout,
            .is_stopping = [this] { return stops_.load(); },
            .shown = ShownBy(options_.settings)},
        clock_, MetricsOf(options_.settings, own_metrics_));
    ShowChief(options_.settings, chief.get());
    const absl::StatusOr<int64_t> started = chief->Start(*store_);
    if (!started.ok()) ShowChief(options_.settings, nullptr);
    RETURN_IF_ERROR(started.status());
    step = *started;
    chief_ = std::move(chief);
  }
  if (state_->version().is_there()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> loaded,
                   state_->MakeParameters());
  RETURN_IF_ERROR(CopyValues(store_->variables(), loaded->variables()));
  state_->Load(std::move(loaded), step);
  return absl::OkStatus();
}

void GroupPeers::HandToChief() {
  chief_->GoOnWith(
      [this](ShardWriter& writer) {
        return state_->Read([&writer](ParameterStore& committed) {
          return committed.Save(writer);
        });
      },
      step_);
  chief_keeps_state_ = true;
}

// One who hears of a stop before the values are agreed on tells the others.
void GroupPeers::Stop() {
  stop_requested_ = true;
  absl::MutexLock lock(&mu_);
  if (is_meeting_) stops_ = true;
  if (meeting_ != nullptr) {
    meeting_->Abort(absl::CancelledError(
        absl::StrCat(NameOfWorker(options_.rank), ": was told to stop")));
  }
}

void GroupPeers::EndMeeting() {
  absl::MutexLock lock(&mu_);
  is_meeting_ = false;
  meeting_ = nullptr;
  // The next Commit() tells all.
  stops_ = false;
}

void GroupPeers::Leave() {
  {
    absl::MutexLock lock(&mu_);
    meeting_ = nullptr;
  }
  watch_.reset();
  collective_.reset();
  endpoint_.reset();
}

std::string GroupPeers::Awaited() const {
  return absl::StrJoin(collective_->Awaited(), ", ",
                       [](std::string* out, int rank) {
                         absl::StrAppend(out, NameOfWorker(rank));
                       });
}

// It may go on later: then it finds that the group has ended.
void GroupPeers::GiveUp() {
  const std::vector<int> awaited = collective_->Awaited();
  collective_->Abort(
      RankLostError(collective_->group(), awaited.empty() ? 0 : awaited.front(),
                    absl::StrCat(Awaited(), " took no part for ",
                                 absl::FormatDuration(options_.peer_timeout))));
}

absl::Status GroupPeers::Settle(absl::string_view what,
                                const absl::Status& status) {
  if (absl::IsUnavailable(status)) return Restart(status);
  RETURN_IF_ERROR(status) << what;
  return absl::OkStatus();
}

absl::Status GroupPeers::Restart(const absl::Status& why) {
  // Another life would not know that it was told to stop.
  if (stop_requested_ || stops_) {
    return absl::CancelledError(
        absl::StrCat("stopped at step ", step_,
                     " when another process was lost: ", why.message()));
  }
  const std::optional<int> lost = LostRank(why);
  LOG(WARNING) << (lost ? absl::StrCat(NameOfWorker(*lost), ": ") : "")
               << why.message() << "; starting anew, with the values of step "
               << step_;
  absl::StatusOr<Descriptor> kept = KeepState(*state_);
  if (!kept.ok()) LOG(WARNING) << kept.status().message();
  Leave();
  ShowChief(options_.settings, nullptr);
  chief_.reset();  // frees the checkpoint directory
  RETURN_IF_ERROR(options_.restart(kept.ok() ? *std::move(kept) : Descriptor()))
      << why.message();
  return absl::UnavailableError(why.message());
}

void GroupPeers::BeginAllReduce(absl::string_view what,
                                std::vector<Contribution> contributions,
                                absl::Span<float> sum) {
  if (what_.empty()) what_ = std::string(what);
  const absl::Status right =
      collective_ == nullptr
          ? NotThere(what)
          : CheckContributions(what, contributions, sum,
                               {.first = options_.rank * options_.replicas,
                                .count = options_.replicas});
  if (!right.ok()) {
    if (failure_.ok()) failure_ = right;
    return;
  }
  // An error stays until Await().
  if (++pending_ == Collective::kMaxPending / 2) {
    collective_->Await().IgnoreError();
    pending_ = 0;
  }
  collective_->AllReduce(std::move(contributions), sum,
                         [](const absl::Status&) {});
}

absl::Status GroupPeers::Await() {
  RETURN_IF_ERROR(failure_);
  const std::string what = std::exchange(what_, "");
  if (collective_ == nullptr) return NotThere(what);
  pending_ = 0;
  const absl::Status summed = [&] {
    // Its reporter may be the chief's, which does not outlive Settle().
    const InnerPart push(reporter(), StepPart::kPush);
    watch_->Begin(what);
    absl::Status status = collective_->Await();
    watch_->End();
    return status;
  }();
  return Settle(what, summed);
}

absl::StatusOr<std::vector<std::string>> GroupPeers::Gather(
    absl::string_view what, absl::string_view own) {
  const InnerPart wait(reporter(), StepPart::kWait);
  std::vector<std::string> gathered;
  collective_->AllGather(own, &gathered, [](const absl::Status&) {});
  watch_->Begin(std::string(what));
  const absl::Status ended = collective_->Await();
  watch_->End();
  RETURN_IF_ERROR(ended);
  return gathered;
}

absl::StatusOr<std::vector<std::string>> GroupPeers::AllGather(
    absl::string_view what, absl::string_view own) {
  RETURN_IF_ERROR(failure_);
  if (collective_ == nullptr) return NotThere(what);
  absl::StatusOr<std::vector<std::string>> gathered = Gather(what, own);
  RETURN_IF_ERROR(Settle(what, gathered.status()));
  return gathered;
}

absl::StatusOr<bool> GroupPeers::Commit(const Iteration& iteration,
                                        ParameterStore& store) {
  RETURN_IF_ERROR(CheckFollows(iteration, step_));
  ASSIGN_OR_RETURN(
      const std::vector<std::string> gathered,
      AllGather(absl::StrCat("the end of iteration ", iteration.step),
                ToBytes({.iteration = iteration, .stops = stop_requested_})));
  ASSIGN_OR_RETURN(IterationMessage all, AddUp(gathered));
  all.iteration.end_step = iteration.end_step;
  all.iteration.values = iteration.values;
  if (all.stops) stops_ = true;
  RETURN_IF_ERROR(state_->MakeStep(kGroup, [&](ParameterStore& committed) {
    return CopyValues(store.variables(), committed.variables());
  }));
  step_ = iteration.step;
  if (own_reporter_ != nullptr) ReportIteration(iteration, *own_reporter_);
  if (chief_ != nullptr) {
    ASSIGN_OR_RETURN(const bool goes_on, chief_->Commit(all.iteration));
    // Others hear of it by End().
    if (!goes_on && !stops_) {
      RETURN_IF_ERROR(chief_->End());
    }
  }
  return !stops_;
}

absl::Status GroupPeers::End(const absl::Status& result) {
  if (has_ended_) return absl::OkStatus();
  if (result.ok() && collective_ == nullptr) return result;
  const absl::Status ended = result.ok() ? EndWell() : EndAll(result);
  if (absl::IsCancelled(ended)) {
    RETURN_IF_ERROR(SaveCommitted());
  }
  return ended;
}

absl::Status GroupPeers::SaveCommitted() {
  Leave();
  const bool is_there = state_ != nullptr && state_->version().is_there();
  if (options_.rank != 0 || !is_there) return absl::OkStatus();
  if (!chief_keeps_state_) {
    EndMeeting();
    RETURN_IF_ERROR(StartChief());
    if (chief_ == nullptr) return absl::OkStatus();
    HandToChief();
  }
  stops_ = true;
  const absl::Status written = chief_->End();
  return absl::IsCancelled(written) ? absl::OkStatus() : written;
}

// What is unavailable to one process is no lost process.
absl::Status GroupPeers::EndAll(const absl::Status& why) {
  if (collective_ != nullptr) {
    const absl::StatusCode code = absl::IsUnavailable(why)
                                      ? absl::StatusCode::kDeadlineExceeded
                                      : why.code();
    collective_->Abort(absl::Status(
        code, absl::StrCat(NameOfWorker(options_.rank), ": ", why.message())));
  }
  Leave();
  return why;
}

absl::Status GroupPeers::EndWell() {
  RETURN_IF_ERROR(AllGather("the end of the program", "").status());
  const absl::Status written =
      chief_ == nullptr ? absl::OkStatus() : chief_->End();
  if (!written.ok() && !(stops_ && absl::IsCancelled(written))) {
    return EndAll(written);
  }
  RETURN_IF_ERROR(AllGather("the last checkpoint", "").status());
  Leave();
  return stops_ ? absl::CancelledError(absl::StrCat("stopped at step ", step_))
                : absl::OkStatus();
}

}  // namespace parasol
