#include "chief/chief_server.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/status_macros.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/watch/findings.h"

namespace parasol {
namespace {

// Time between two looks of the page: people see no more.
constexpr absl::Duration kShown = absl::Milliseconds(500);
constexpr absl::Duration kTick = absl::Milliseconds(100);
// Time by which a claim may be answered before its deadline, so that a thousand
// waiting claims are answered together.
constexpr absl::Duration kClaimSlack = absl::Milliseconds(20);

}  // namespace

ChiefServer::ChiefServer(Options options,
                         std::unique_ptr<OrderExecutor> executor, Clock& clock,
                         MetricsRegistry& metrics)
    : options_(std::move(options)),
      executor_(std::move(executor)),
      clock_(clock),
      metrics_(metrics),
      self_(clock),
      coordinator_(options_.coordinator, clock.Now()),
      probes_(
          options_.is_nobody_at,
          [this](const Coordinator::Suspect& suspect) { NoteGone(suspect); }) {}

ChiefServer::~ChiefServer() {
  {
    absl::MutexLock lock(&mu_);
    shutting_down_ = true;
  }
  if (threads_.empty()) return;
  // A call that is about to start is cancelled the next time.
  do {
    executor_->CancelAllCalls();
  } while (!HaveOrdersEnded(kTick));
  for (std::thread& thread : threads_) thread.join();
}

bool ChiefServer::HaveOrdersEnded(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  return Clock::Real().AwaitWithTimeout(mu_, absl::Condition(&orders_ended_),
                                        limit);
}

void ChiefServer::Start() {
  threads_.emplace_back([this] { RunOrders(); });
  threads_.emplace_back([this] { RunTime(); });
  threads_.emplace_back([this] { RunClaims(); });
}

absl::StatusOr<wire::RegisterResponse> ChiefServer::Register(
    const wire::RegisterRequest& request) {
  // A new process would get a smaller place epoch here than an older process
  // that has registered with this chief's successor.
  if (request.place_epoch() == 0) {
    const absl::Status owner = executor_->LookAtOwner();
    if (!owner.ok()) {
      return absl::AbortedError(
          absl::StrCat("this chief has been replaced: ", owner.message()));
    }
  }
  wire::RegisterResponse response;
  {
    absl::MutexLock lock(&mu_);
    ASSIGN_OR_RETURN(response, coordinator_.Register(request, clock_.Now()));
    Changed();
  }
  const std::string task =
      NameOf(options_.coordinator, TaskId::Of(request.task()));
  if (response.place_epoch() == 0) {
    LOG(INFO) << task << " works with run " << request.run_id()
              << ", another one or in another layout: it has to start again";
  } else {
    Tell(absl::StrCat(task, " registered",
                      request.run_id().empty()
                          ? ""
                          : absl::StrCat(", holding run ", request.run_id())),
         /*is_warning=*/false);
  }
  *response.mutable_heartbeat_interval() = ToProto(options_.heartbeat_interval);
  *response.mutable_lease() = ToProto(options_.coordinator.lease);
  response.set_checkpoint_directory(executor_->store().directory());
  return response;
}

absl::StatusOr<wire::HeartbeatResponse> ChiefServer::Heartbeat(
    const wire::HeartbeatRequest& request) {
  absl::StatusOr<wire::HeartbeatResponse> response;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = clock_.Now();
    response = coordinator_.Heartbeat(request, now);
    if (!response.ok()) return response;
    inspections_.Exchange(TaskId::Of(request.task()).ToString(),
                          request.task().incarnation(), request, now,
                          *response);
    response->set_unix_micros(absl::ToUnixMicros(now));
    if (request.lost_primary_size() > 0) {
      probes_.Add(coordinator_.Suspects(request));
    }
  }
  if (!request.has_standby()) return response;
  if (!RecordStandbys().ok()) return response;
  absl::MutexLock lock(&mu_);
  const std::optional<uint64_t> kept = coordinator_.standbys().AnswerTo(
      request.task().index(), request.standby());
  if (kept) response->set_kept_standby(*kept);
  return response;
}

absl::StatusOr<wire::GetPlacementResponse> ChiefServer::GetPlacement(
    const wire::GetPlacementRequest& request) {
  absl::MutexLock lock(&mu_);
  return coordinator_.GetPlacement(request);
}

void ChiefServer::ClaimSteps(const wire::ClaimStepsRequest& request,
                             StepClaim::Done done) {
  const absl::Time now = clock_.Now();
  StepClaim claim = {
      .request = request,
      .came = now,
      .deadline = now + std::min(FromProto(request.wait()), kMaxClaimWait),
      .done = std::move(done)};
  std::optional<ClaimAnswer> answer;
  std::optional<StepClaim> earlier;
  {
    absl::MutexLock lock(&mu_);
    answer = TryClaim(claim);
    if (!answer) earlier = waiting_.Add(std::move(claim));
  }
  if (answer) claim.done(*std::move(answer));
  if (earlier) {
    earlier->done(absl::AbortedError(absl::StrCat(
        TaskId::Of(request.task()).ToString(), " has claimed steps again")));
  }
}

std::optional<ChiefServer::ClaimAnswer> ChiefServer::TryClaim(
    const StepClaim& claim) {
  const absl::Time now = clock_.Now();
  ClaimAnswer answer = coordinator_.ClaimSteps(claim.request, now);
  has_news_ |= NoteClaimNews(now).may_have_order;
  const bool waits = answer.ok() && !waits_ended_ && now < claim.deadline &&
                     !IsNews(claim.request, *answer);
  if (waits) return std::nullopt;
  if (self_.recorder().is_on()) {
    self_.recorder().Add({.name = "claim",
                          .track = TaskId::Of(claim.request.task()).ToString(),
                          .begin = claim.came,
                          .end = now});
  }
  return answer;
}

void ChiefServer::RunClaims() {
  absl::Time wakes_at = absl::InfiniteFuture();
  while (true) {
    std::vector<std::pair<StepClaim::Done, ClaimAnswer>> answers;
    {
      absl::MutexLock lock(&mu_);
      wakes_at = waiting_.deadline();
      const auto has_work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return has_claim_news_ || shutting_down_ ||
               waiting_.deadline() < wakes_at;
      };
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_work),
                              wakes_at - clock_.Now());
      if (shutting_down_ && waiting_.size() == 0) return;
      waits_ended_ |= shutting_down_;
      answers = AnswerClaims();
    }
    for (auto& [done, answer] : answers) done(std::move(answer));
  }
}

std::vector<std::pair<StepClaim::Done, ChiefServer::ClaimAnswer>>
ChiefServer::AnswerClaims() {
  const absl::Time now = clock_.Now();
  const bool asks_all = std::exchange(has_claim_news_, false) || waits_ended_;
  claim_news_ = coordinator_.NewsAt(now).claims;
  // Whoever is due soon is answered with those who are due.
  std::vector<StepClaim> claims =
      asks_all ? waiting_.TakeAll() : waiting_.TakeDue(now + kClaimSlack);
  std::vector<std::pair<StepClaim::Done, ClaimAnswer>> answers;
  std::optional<wire::JobStatus> named;
  for (StepClaim& claim : claims) {
    if (claim.deadline <= now + kClaimSlack) claim.deadline = now;
    std::optional<ClaimAnswer> answer = TryClaim(claim);
    if (!answer) {
      waiting_.Add(std::move(claim));
      continue;
    }
    if (answer->ok() && !IsNews(claim.request, **answer)) {
      // Finds the awaited task once for all claims: that takes long.
      if (!named) named = coordinator_.Status(now);
      *(*answer)->mutable_awaited_task() = named->awaited_task();
    }
    answers.emplace_back(std::move(claim.done), *std::move(answer));
  }
  return answers;
}

absl::StatusOr<wire::ReportFailureResponse> ChiefServer::ReportFailure(
    const wire::ReportFailureRequest& request) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(coordinator_.ReportFailure(request, clock_.Now()));
  Changed();
  return wire::ReportFailureResponse();
}

absl::StatusOr<wire::LeaveResponse> ChiefServer::Leave(
    const wire::LeaveRequest& request) {
  {
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(coordinator_.Leave(request, clock_.Now()));
    Changed();
  }
  Tell(absl::StrCat(NameOf(options_.coordinator, TaskId::Of(request.task())),
                    " left"),
       /*is_warning=*/false);
  return wire::LeaveResponse();
}

absl::StatusOr<wire::JobStatus> ChiefServer::GetStatus(
    const wire::GetStatusRequest&) {
  wire::JobStatus status;
  {
    absl::MutexLock lock(&mu_);
    status = Status();
  }
  AddFindings(status);
  return status;
}

wire::JobStatus ChiefServer::Status() const {
  wire::JobStatus status = coordinator_.Status(clock_.Now());
  const std::optional<int64_t> newest =
      coordinator_.NewsAt(clock_.Now()).newest_checkpoint;
  if (newest) status.set_checkpoint(executor_->store().PathOf(*newest));
  wire::TaskStatus* self = status.add_task();
  self->mutable_task()->set_role("chief");
  self->set_address(options_.address);
  self->set_metrics_address(options_.metrics_address);
  self->set_alive(true);
  return status;
}

void ChiefServer::Evaluated(const std::vector<Evaluation>& evaluations) {
  std::vector<std::string> lines;
  {
    absl::MutexLock lock(&mu_);
    lines = coordinator_.Evaluated(evaluations, clock_.Now());
    Changed();
  }
  for (const std::string& line : lines) Tell(line, /*is_warning=*/false);
  if (options_.page != nullptr) options_.page->Evaluated(evaluations);
}

absl::Status ChiefServer::Wait() {
  absl::MutexLock lock(&mu_);
  auto has_outcome = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return outcome_.has_value();
  };
  mu_.Await(absl::Condition(&has_outcome));
  return *outcome_;
}

void ChiefServer::Changed() {
  has_news_ = true;
  NoteClaimNews(clock_.Now());
}

Coordinator::News ChiefServer::NoteClaimNews(absl::Time now) {
  const Coordinator::News news = coordinator_.NewsAt(now);
  if (news.claims == claim_news_) return news;
  claim_news_ = news.claims;
  has_claim_news_ = waiting_.size() > 0;
  return news;
}

void ChiefServer::EndWaits() {
  absl::MutexLock lock(&mu_);
  waits_ended_ = true;
  has_claim_news_ = true;
}

void ChiefServer::RequestStop() {
  LOG(INFO) << "told to stop";
  absl::MutexLock lock(&mu_);
  coordinator_.RequestStop(clock_.Now());
  stop_requested_ = true;
  Changed();
}

void ChiefServer::End(absl::Status outcome) {
  absl::MutexLock lock(&mu_);
  if (!outcome_) outcome_ = std::move(outcome);
  waits_ended_ = true;
  has_claim_news_ = true;
  executor_->CancelAllCalls();
  Changed();
}

void ChiefServer::RunOrders() {
  CarryOutOrders();
  absl::MutexLock lock(&mu_);
  orders_ended_ = true;
}

void ChiefServer::CarryOutOrders() {
  while (true) {
    std::optional<Order> order;
    {
      absl::MutexLock lock(&mu_);
      auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return has_news_ || shutting_down_;
      };
      mu_.Await(absl::Condition(&has_work));
      if (shutting_down_) return;
      has_news_ = false;
      order = coordinator_.NextOrder(clock_.Now());
      order_ = order;
    }
    if (order) {
      std::visit([this](const auto& order) { CarryOut(order); }, *order);
    }
  }
}

void ChiefServer::CarryOut(const LoadOrder& order) {
  for (const auto& target : order.targets) {
    LOG(INFO) << "loading "
              << NameOf(
                     options_.coordinator,
                     {"ps", options_.coordinator.shards[target.shard].ps_index})
              << (target.holds_shard      ? ", which keeps its values"
                  : order.from_checkpoint ? " from the newest checkpoint"
                                          : " with initial values");
  }
  const absl::Time start = clock_.Now();
  const std::vector<absl::Status> results = executor_->Load(order);
  Trace("load", "orders", start);
  for (const absl::Status& result : results) {
    metrics_.LoadTried(result);
    if (!result.ok()) {
      Tell(absl::StrCat("load: ", result.message()), /*is_warning=*/true);
    }
  }
  absl::MutexLock lock(&mu_);
  order_.reset();
  for (size_t i = 0; i < results.size(); ++i) {
    const LoadOrder::Target& target = order.targets[i];
    coordinator_.Done(
        LoadResult{target, results[i], executor_->LostBy(target.shard)},
        clock_.Now());
  }
  Changed();
}

void ChiefServer::CarryOut(const CheckpointOrder& order) {
  const absl::Time start = clock_.Now();
  const absl::StatusOr<int64_t> step =
      executor_->WriteCheckpoint(order, start, [this] {
        options_.look_at_evaluations();
        absl::MutexLock lock(&mu_);
        return coordinator_.Kept();
      });
  const absl::Duration took = clock_.Now() - start;
  Trace("checkpoint", "orders", start);
  metrics_.CheckpointTried(step.status(), took);
  CheckpointOrder done = order;
  if (step.ok()) {
    done.manifest.set_global_step(*step);
    LOG(INFO) << "checkpoint " << executor_->store().PathOf(*step) << " in "
              << absl::FormatDuration(absl::Trunc(took, absl::Milliseconds(1)))
              << LogFields()
                     .AddCount("step", *step)
                     .AddNumber("seconds", absl::ToDoubleSeconds(took));
  } else {
    Tell(absl::StrCat("no checkpoint of step ", order.manifest.global_step(),
                      ": ", step.status().message()),
         /*is_warning=*/true);
  }
  {
    absl::MutexLock lock(&mu_);
    order_.reset();
    coordinator_.Done(CheckpointResult{done, step.status()}, clock_.Now());
    Changed();
  }
  // If it has all pushes, no standby is needed for them.
  if (step.ok()) RecordStandbys().IgnoreError();
}

void ChiefServer::RunTime() {
  StatusLog log(clock_.Now());
  TaskNotes notes;
  while (true) {
    Tick(log, notes);
    ShowItself();
    absl::MutexLock lock(&mu_);
    if (clock_.AwaitWithTimeout(mu_, absl::Condition(&shutting_down_), kTick)) {
      return;
    }
  }
}

void ChiefServer::Tell(absl::string_view line, bool is_warning) {
  if (is_warning) {
    LOG(WARNING) << line;
  } else {
    LOG(INFO) << line;
  }
  if (options_.page != nullptr) options_.page->Note(line, is_warning);
}

void ChiefServer::Tick(StatusLog& log, TaskNotes& notes) {
  const absl::Time now = clock_.Now();
  Coordinator::Ticked ticked;
  wire::JobStatus status;
  {
    absl::MutexLock lock(&mu_);
    ticked = coordinator_.Tick(now);
    status = Status();
    if (!outcome_) outcome_ = coordinator_.Outcome(now);
    // Under the lock: no snapshot may be taken for the checkpoint that follows.
    const bool is_loading =
        order_ && std::holds_alternative<LoadOrder>(*order_);
    if (stop_requested_ && !ticked.awaits_standby &&
        (is_loading || status.phase() == wire::WAITING_FOR_PS ||
         status.phase() == wire::LOADING)) {
      executor_->CancelAllCalls();
    }
    const CallsInVain in_vain = order_ ? ticked.in_vain : CallsInVain();
    for (const size_t shard : in_vain.shards) executor_->CancelCalls(shard);
    if (in_vain.awaits_nobody && executor_->AwaitsWorkers()) {
      executor_->CancelAllCalls();
    }
    // Nothing is kept of a job that failed; a snapshot may await a step that
    // does not come any more.
    if (status.phase() == wire::FAILED || in_vain.is_obsolete) {
      executor_->CancelAllCalls();
    }
    if (outcome_ && !std::exchange(waits_ended_, true)) has_claim_news_ = true;
    Changed();
  }
  metrics_.Show(status);
  if (now >= next_show_) {
    next_show_ = now + kShown;
    wire::JobStatus shown = status;
    AddFindings(shown);
    metrics_.ShowBound(shown);
    if (options_.page != nullptr) options_.page->Show(std::move(shown));
  }
  for (const TaskId& task : ticked.lost) {
    const bool is_expected =
        options_.coordinator.has_elastic_workers && task.role == "worker";
    if (!is_expected) metrics_.LeaseExpired(task.role);
    Tell(absl::StrCat("lost ", NameOf(options_.coordinator, task),
                      ": its lease ran out"),
         /*is_warning=*/!is_expected);
  }
  for (const std::string& line : ticked.warnings) {
    Tell(line, /*is_warning=*/true);
  }
  for (const TaskNotes::Note& note : notes.Notes(status)) {
    Tell(note.line, note.is_warning);
  }
  for (const std::string& line : log.Lines(status, now)) {
    LOG(INFO) << line << JobFields(status);
  }
}

}  // namespace parasol
