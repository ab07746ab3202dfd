#include "tests/simulation/chief_process.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/resume.h"
#include "coordinator/followed_run.h"
#include "tests/simulation/job_of.h"
#include "tests/simulation/standby_link.h"

namespace parasol::simulation {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr absl::Duration kMaxClaimWait = absl::Seconds(10);
constexpr absl::Duration kShardCallDeadline = absl::Minutes(30);
constexpr absl::Duration kProbeTime = absl::Milliseconds(5);
constexpr absl::Duration kCommitTime = absl::Milliseconds(20);
// As DirectoryOwnership renews its lease.
constexpr absl::Duration kRenewalInterval = absl::Seconds(3);

}  // namespace

ChiefProcess::ChiefProcess(World& world, int number, const JobChoice& job)
    : Process(world, {"chief", 0}, number), job_(job) {}

void ChiefProcess::Start() {
  absl::StatusOr<Coordinator::Options> options = Resume();
  if (!options.ok()) {
    // Not while its launch is in progress.
    world().After(
        *this, absl::ZeroDuration(),
        [this, status = options.status()] { world().Exit(*this, status); });
    return;
  }
  options_ = *std::move(options);
  for (const ShardBoard::Shard& shard : options_.shards) {
    places_.push_back({"ps", shard.ps_index});
  }
  coordinator_ = std::make_unique<Coordinator>(options_, now());
  world().auditor().ChiefStarts(number());
  Renew();
  Tick();
}

void ChiefProcess::Renew() {
  if (!world().rules().directory_has_owner) return;
  if (!CheckOwner(world().disk().CheckRead(world().random()))) return;
  world().After(*this, kRenewalInterval, [this] { Renew(); });
}

bool ChiefProcess::CheckOwner(const absl::Status& read) {
  if (!world().rules().directory_has_owner || !read.ok()) return true;
  if (world().disk().owner() == number()) return true;
  world().Exit(
      *this, absl::FailedPreconditionError("the directory has another owner"));
  return false;
}

std::optional<RunHistory> ChiefProcess::HistoryOf(
    const Coordinator::Options& options) {
  if (!world().rules().abandoned_do_not_count) return std::nullopt;
  return RunHistory(options.resumed, options.chief_epoch);
}

// The model of ChiefTask::Start() with the real comparison of jobs.
absl::StatusOr<Coordinator::Options> ChiefProcess::Resume() {
  Coordinator::Options options = OptionsOf(world().schedule().shape, job_);
  options.run_id = absl::StrCat("run-", number());
  options.chief_epoch = world().disk().Take(number());
  options.ps_epochs = world().disk().ps_epochs();
  options.standbys = world().disk().standbys();
  options.acting_hosts = world().disk().acting_hosts();
  for (const int64_t step : world().disk().Steps()) {
    const auto read = world().disk().Read(step, world().random());
    if (absl::IsDataLoss(read.status())) continue;
    RETURN_IF_ERROR(read.status());
    const durable::CheckpointManifest& manifest = (*read)->manifest;
    RETURN_IF_ERROR(CheckResumable(manifest, options.job, options.contents));
    options.run_id = manifest.run_id();
    options.already_complete = IsComplete(manifest, options.job);
    options.resumed = manifest;
    world().Trace(this, "resumes at step ", step);
    break;
  }
  options.evaluations =
      world().disk().Evaluations(options.run_id, HistoryOf(options));
  RETURN_IF_ERROR(ResumeFollowed(options));
  for (const auto& file : world().disk().Followed(options.run_id)) {
    if (!options.followed || file.path() <= options.followed->last_path()) {
      continue;
    }
    RETURN_IF_ERROR(options.followed->Add(file));
  }
  files_ = options.followed;
  return options;
}

void ChiefProcess::Tick() {
  const Coordinator::Ticked ticked = coordinator_->Tick(now());
  for (const TaskId& lost : ticked.lost) {
    world().Trace(this, "loses ", lost.ToString());
  }
  LookAtEvaluations();
  if (!LookForFiles()) return;
  CancelMootCalls(ticked.in_vain);
  Changed();
  if (const std::optional<absl::Status> outcome =
          coordinator_->Outcome(now())) {
    return world().Exit(*this, *outcome);
  }
  world().After(*this, kTick, [this] { Tick(); });
}

// As EvaluationWatch does.
void ChiefProcess::LookAtEvaluations() {
  const std::vector<Evaluation> evaluations =
      world().disk().Evaluations(options_.run_id, HistoryOf(options_));
  if (evaluations.size() == evaluations_) return;
  evaluations_ = evaluations.size();
  for (const std::string& line : coordinator_->Evaluated(evaluations, now())) {
    world().Trace(this, line);
  }
}

// As DataFollower does: a file is recorded before it is told of.
bool ChiefProcess::LookForFiles() {
  const Shape& shape = world().schedule().shape;
  if (!files_ || files_->batches() >= shape.steps) return true;
  const absl::Status read = world().disk().CheckRead(world().random());
  if (!CheckOwner(read)) return false;
  if (!read.ok()) return true;
  const int64_t batches = std::min(1 + files_->batches() % shape.growth,
                                   shape.steps - files_->batches());
  const durable::FollowedFile file =
      files_->Next(absl::StrFormat("%06d", files_->batches()), 1,
                   batches * kBatchSize, kBatchSize);
  world().disk().Record(options_.run_id, file);
  const absl::Status added = files_->Add(file);
  if (!added.ok()) world().auditor().Violate("file", added.ToString());
  FollowedLook look;
  look.files = {file};
  coordinator_->Follow(look, now());
  return true;
}

void ChiefProcess::Terminate() {
  world().Trace(this, "is told to end");
  // Not before it has read the manifests.
  if (coordinator_ == nullptr) {
    return world().Exit(*this, absl::CancelledError("told to end"));
  }
  coordinator_->RequestStop(now());
  Changed();
}

// As ChiefServer does.
void ChiefProcess::CancelMootCalls(const CallsInVain& in_vain) {
  if (!loading_ && !writing_) return;
  if (in_vain.is_obsolete || in_vain.awaits_nobody) return CancelSnapshots();
  if (writing_ && !in_vain.shards.empty()) *writing_->is_cancelled = true;
  for (const size_t shard : in_vain.shards) {
    world().CancelCalls(*this, PsOf(shard));
  }
}

void ChiefProcess::Changed() {
  AnswerClaims();
  CarryOutOrders();
}

void ChiefProcess::Register(const wire::RegisterRequest& request,
                            const World::Done<Registration>& done) {
  if (coordinator_ == nullptr) return;
  // As ChiefServer does.
  if (request.place_epoch() == 0 &&
      !CheckOwner(world().disk().CheckRead(world().random()))) {
    return;
  }
  const auto response = coordinator_->Register(request, now());
  if (!response.ok()) return done(response.status());
  world().Trace(this, "registers ", TaskId::Of(request.task()).ToString(),
                request.run_id().empty() ? "" : ", which holds the run");
  done(Registration{.run_id = response->run_id(),
                    .layout = response->layout(),
                    .chief_epoch = response->chief_epoch(),
                    .place_epoch = response->place_epoch(),
                    .job = job_});
  Changed();
}

void ChiefProcess::Heartbeat(const wire::HeartbeatRequest& request,
                             const World::Done<wire::HeartbeatResponse>& done) {
  if (coordinator_ == nullptr) return;
  auto response = coordinator_->Heartbeat(request, now());
  if (!response.ok()) return done(std::move(response));
  // As SuspectProbes does, a moment later.
  for (const auto& suspect : coordinator_->Suspects(request)) {
    world().After(*this, kProbeTime, [this, suspect] {
      if (!world().IsRefused(PlaceOf(suspect.address)) ||
          !coordinator_->NoteGone(suspect, now())) {
        return;
      }
      world().Trace(this, "finds nobody at ps/", suspect.ps_index);
      Changed();
    });
  }
  if (request.has_standby()) {
    if (!CheckOwner(world().disk().CheckRead(world().random()))) return;
    RecordStandbys();
    const auto kept = coordinator_->standbys().AnswerTo(request.task().index(),
                                                        request.standby());
    if (kept) response->set_kept_standby(*kept);
  }
  done(std::move(response));
  Changed();
}

void ChiefProcess::GetPlacement(
    const wire::GetPlacementRequest& request,
    const World::Done<wire::GetPlacementResponse>& done) {
  if (coordinator_ == nullptr) return;
  done(coordinator_->GetPlacement(request));
}

void ChiefProcess::ClaimSteps(
    const wire::ClaimStepsRequest& request,
    const World::Done<wire::ClaimStepsResponse>& done) {
  if (coordinator_ == nullptr) return;
  auto response = coordinator_->ClaimSteps(request, now());
  if (response.ok()) world().auditor().Credited(response->global_step());
  const absl::Duration wait =
      std::min(absl::Seconds(request.wait().seconds()), kMaxClaimWait);
  if (!response.ok() || IsNews(request, *response) ||
      wait <= absl::ZeroDuration()) {
    done(std::move(response));
  } else {
    claims_.push_back({request, now() + wait, done});
    next_expiry_ = std::min(next_expiry_, now() + wait);
  }
  Changed();
}

void ChiefProcess::AnswerClaims() {
  const int64_t news = coordinator_->NewsAt(now()).claims;
  const bool has_expired = now() >= next_expiry_;
  if (answering_ || (news == claim_news_ && !has_expired)) return;
  answering_ = true;
  claim_news_ = news;
  next_expiry_ = absl::InfiniteFuture();
  std::vector<WaitingClaim> claims = std::exchange(claims_, {});
  for (WaitingClaim& claim : claims) {
    auto response = coordinator_->ClaimSteps(claim.request, now());
    if (response.ok() && now() < claim.deadline &&
        !IsNews(claim.request, *response)) {
      next_expiry_ = std::min(next_expiry_, claim.deadline);
      claims_.push_back(std::move(claim));
    } else {
      claim.done(std::move(response));
    }
  }
  answering_ = false;
}

void ChiefProcess::ReportFailure(
    const wire::ReportFailureRequest& request,
    const World::Done<wire::ReportFailureResponse>& done) {
  if (coordinator_ == nullptr) return;
  world().Trace(this, "hears of a failure: ", request.message());
  const absl::Status status = coordinator_->ReportFailure(request, now());
  if (!status.ok()) return done(status);
  done(wire::ReportFailureResponse());
  Changed();
}

void ChiefProcess::Leave(const wire::LeaveRequest& request,
                         const World::Done<wire::LeaveResponse>& done) {
  if (coordinator_ == nullptr) return;
  const absl::Status status = coordinator_->Leave(request, now());
  if (!status.ok()) return done(status);
  done(wire::LeaveResponse());
  Changed();
}

void ChiefProcess::RecordStandbys() {
  const auto kept = coordinator_->standbys().ToRecord();
  if (!kept || !world().disk().CheckWrite(world().random()).ok()) return;
  world().disk().RecordStandbys(*kept);
  coordinator_->standbys().Recorded(*kept);
}

void ChiefProcess::CarryOutOrders() {
  if (loading_ || writing_) return;
  std::optional<Order> order = coordinator_->NextOrder(now());
  if (!order) return;
  std::visit([this](auto& order) { CarryOut(std::move(order)); }, *order);
}

void ChiefProcess::CarryOut(LoadOrder order) {
  loading_ = Loading{};
  loading_->order = std::move(order);
  const size_t targets = loading_->order.targets.size();
  loading_->results.resize(targets);
  for (size_t i = 0; i < targets; ++i) loading_->pending.push_back(i);
  loading_->sources = {-1};
  if (loading_->order.from_checkpoint) {
    auto sources = RunCheckpoints();
    const absl::Status none =
        sources.ok() ? absl::DataLossError("no checkpoint can be read")
                     : sources.status();
    loading_->sources = sources.ok() ? *sources : std::vector<int64_t>();
    for (absl::Status& result : loading_->results) result = none;
  }
  world().disk().RecordPlaces(loading_->order.ps_epochs);
  world().disk().RecordActing(loading_->order.acting_hosts);
  LoadFromSource();
}

absl::StatusOr<std::vector<int64_t>> ChiefProcess::RunCheckpoints() {
  std::vector<int64_t> steps;
  for (const int64_t step : world().disk().Steps()) {
    const auto read = world().disk().Read(step, world().random());
    if (absl::IsUnavailable(read.status()) &&
        world().rules().read_errors_pass) {
      return read.status();
    }
    if (read.ok() && (*read)->manifest.run_id() == options_.run_id) {
      steps.push_back(step);
    }
  }
  return steps;
}

void ChiefProcess::LoadFromSource() {
  if (loading_->pending.empty() ||
      loading_->source == loading_->sources.size()) {
    return EndLoad();
  }
  const int64_t source = loading_->sources[loading_->source];
  if (source >= 0 && source < world().disk().NewestIntact(options_.run_id)) {
    world().auditor().Violate(
        "older checkpoint",
        absl::StrCat("checkpoint ", source, " is loaded though ",
                     world().disk().NewestIntact(options_.run_id),
                     " is intact"));
  }
  loading_->unanswered = loading_->pending.size();
  ++orders_;
  for (const size_t i : loading_->pending) {
    const LoadOrder::Target& target = loading_->order.targets[i];
    const LoadCall call{.run_id = options_.run_id,
                        .incarnation = target.incarnation,
                        .chief_epoch = options_.chief_epoch,
                        .number = orders_,
                        .layout = LayoutOf(job_),
                        .hyperparameters = job_.hyperparameters,
                        .learning_rate = loading_->order.learning_rate,
                        .shard = static_cast<int>(target.shard),
                        .checkpoint = source,
                        .standby = target.standby,
                        .global_step = loading_->order.global_step};
    world().Trace(this, "orders ", PsOf(target.shard).ToString(), " to load ",
                  source);
    places_[target.shard] = PlaceOf(target.address);
    // As PsClient does.
    world().DropOtherConnection(*this, PsOf(target.shard), target.incarnation);
    world().Call<ShardHolder, Nothing>(
        *this, PsOf(target.shard), kShardCallDeadline,
        [call](ShardHolder& ps, const World::Done<Nothing>& done) {
          ps.Load(call, done);
        },
        [this, i](const absl::StatusOr<Nothing>& response) {
          loading_->results[i] = response.status();
          if (--loading_->unanswered == 0) EndSource();
        });
  }
}

void ChiefProcess::EndSource() {
  std::erase_if(loading_->pending, [this](size_t i) {
    const absl::Status& result = loading_->results[i];
    return !absl::IsNotFound(result) && !absl::IsDataLoss(result);
  });
  ++loading_->source;
  LoadFromSource();
}

void ChiefProcess::EndLoad() {
  const Loading ended = *std::exchange(loading_, std::nullopt);
  for (size_t i = 0; i < ended.results.size(); ++i) {
    world().Trace(this, "load: ", ended.results[i].ToString());
    coordinator_->Done(LoadResult{ended.order.targets[i], ended.results[i]},
                       now());
  }
  Changed();
}

void ChiefProcess::CarryOut(CheckpointOrder order) {
  ++orders_;
  writing_ = Writing{};
  writing_->checkpoint.manifest = order.manifest;
  writing_->order = std::move(order);
  writing_->checkpoint.files.resize(options_.shards.size());
  for (size_t i = 0; i < options_.shards.size(); ++i) {
    writing_->checkpoint.manifest.add_file();
  }
  world().Trace(this, "orders checkpoint ",
                writing_->order.manifest.global_step());
  writing_->order.at_one_step ? ChooseCut() : SnapshotShards();
}

SnapshotCall ChiefProcess::CallOf(size_t shard) const {
  return {.run_id = options_.run_id,
          .incarnation = writing_->order.incarnations[shard],
          .chief_epoch = options_.chief_epoch,
          .number = orders_,
          .stay = writing_->order.stay};
}

// All shards at the largest number of updates that any of them has had.
void ChiefProcess::ChooseCut() {
  writing_->unanswered = options_.shards.size();
  writing_->bounds.resize(options_.shards.size());
  for (size_t i = 0; i < options_.shards.size(); ++i) {
    const SnapshotCall call = CallOf(i);
    world().Call<ShardHolder, Updates>(
        *this, PsOf(i), kShardCallDeadline,
        [call](ShardHolder& ps, const auto& done) {
          ps.PrepareSnapshot(call, done);
        },
        [this, i](const absl::StatusOr<Updates>& response) {
          if (response.ok()) writing_->bounds[i] = *response;
          writing_->failure.Update(response.status());
          if (--writing_->unanswered == 0) TakeCut();
        });
  }
}

void ChiefProcess::TakeCut() {
  if (!writing_->failure.ok()) return EndSnapshots();
  int64_t cut = writing_->checkpoint.manifest.global_step();
  for (const Updates& shard : writing_->bounds) cut = std::max(cut, shard.max);
  const bool is_behind =
      std::any_of(writing_->bounds.begin(), writing_->bounds.end(),
                  [cut](const Updates& shard) { return shard.min < cut; });
  if (is_behind && !writing_->order.may_await) {
    writing_->failure =
        absl::UnavailableError("a shard is behind, and no worker is there");
    return EndSnapshots();
  }
  writing_->checkpoint.manifest.set_global_step(cut);
  writing_->checkpoint.manifest.set_evaluation_due(
      writing_->order.IsEvaluatedAt(cut));
  SnapshotShards();
}

void ChiefProcess::SnapshotShards() {
  writing_->unanswered = options_.shards.size();
  for (size_t i = 0; i < options_.shards.size(); ++i) {
    SnapshotCall call = CallOf(i);
    call.is_cancelled = [this, is_cancelled = writing_->is_cancelled] {
      return !alive() || *is_cancelled;
    };
    if (writing_->order.at_one_step) {
      call.at_updates = writing_->checkpoint.manifest.global_step();
    }
    world().Call<ShardHolder, std::shared_ptr<const ShardValues>>(
        *this, PsOf(i), kShardCallDeadline,
        [call](ShardHolder& ps, const auto& done) { ps.Snapshot(call, done); },
        [this, i](const auto& response) {
          if (response.ok()) writing_->checkpoint.files[i] = *response;
          EndSnapshot(response.status());
        });
  }
}

void ChiefProcess::EndSnapshot(const absl::Status& status) {
  const bool is_first_failure = writing_->failure.ok() && !status.ok();
  writing_->failure.Update(status);
  if (--writing_->unanswered == 0) {
    return world().After(*this, kCommitTime, [this] { EndSnapshots(); });
  }
  // The others may await a step that cannot come without this shard.
  if (is_first_failure && writing_->order.at_one_step) CancelSnapshots();
}

void ChiefProcess::CancelSnapshots() {
  const std::shared_ptr<bool> is_cancelled = writing_->is_cancelled;
  *is_cancelled = true;
  for (size_t i = 0; i < options_.shards.size(); ++i) {
    // The end of the last call may have begun the next order.
    if (!writing_ || writing_->is_cancelled != is_cancelled) return;
    world().CancelCalls(*this, PsOf(i));
  }
}

void ChiefProcess::EndSnapshots() {
  Writing ended = *std::exchange(writing_, std::nullopt);
  Disk& disk = world().disk();
  absl::Status status = ended.failure;
  if (!CheckOwner(absl::OkStatus())) return;
  if (status.ok()) {
    status = disk.Commit(ended.checkpoint, world().random());
  }
  const int64_t step = ended.checkpoint.manifest.global_step();
  ended.order.manifest.set_global_step(step);
  world().Trace(this, "checkpoint ", step, ": ", status.ToString());
  if (status.ok()) {
    world().auditor().Committed(number(), ended.checkpoint);
    LookAtEvaluations();
    disk.Prune(options_.job.checkpoint().max_to_keep(), step,
               coordinator_->Kept());
    world().auditor().Pruned(disk, options_.run_id);
  } else {
    world().auditor().CheckpointFails(status);
  }
  coordinator_->Done(CheckpointResult{ended.order, status}, now());
  if (status.ok()) RecordStandbys();
  Changed();
}

}  // namespace parasol::simulation
