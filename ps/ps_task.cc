#include "ps/ps_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/work_helpers.h"
#include "cluster/client/chief_client.h"
#include "cluster/client/task_identity.h"

namespace parasol {
namespace {

// gRPC ends streams beyond this many times the buffers' bytes, so that it is
// meant for those who send and don't let us read, not for busy workers.
constexpr int64_t kTransportBuffers = 4;

// Less than half of a lease: one call may go into a dead connection.
constexpr absl::Duration kChiefCallDeadline = absl::Seconds(4);

// A state of 500 GB, written and sent at .3 GB/s.
constexpr absl::Duration kTakeDeadline = absl::Minutes(30);

// For the answer to a heartbeat of a ps that was told to stop.
constexpr absl::Duration kFreshStateLimit = absl::Seconds(1);

std::string NameOf(const wire::Task& task) {
  return absl::StrCat(task.role(), "/", task.index());
}

absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

bool HasEnded(const wire::HeartbeatResponse& state) {
  return state.phase() == wire::COMPLETE || state.phase() == wire::FAILED;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PsTask>> PsTask::Start(
    const PsTaskOptions& options, Clock& clock, MetricsRegistry& metrics) {
  ShardState::RemoveStale();
  std::unique_ptr<PayloadHost> lanes;
  if (options.payload_port >= 0) {
    ASSIGN_OR_RETURN(
        lanes, PayloadHost::Start(std::string(HostOf(options.listen_address)),
                                  options.payload_port, options.polling_threads,
                                  kTransportBuffers * options.buffer_bytes,
                                  options.trust));
  }
  std::unique_ptr<PsTask> task(
      new PsTask(options, std::move(lanes), clock, metrics));
  ASSIGN_OR_RETURN(
      task->rpc_server_,
      RpcServer::Start(
          options.listen_address, task->service_,
          {.threads = options.polling_threads,
           .limits = {.transport_bytes = static_cast<size_t>(
                          kTransportBuffers * options.buffer_bytes)},
           .trust = options.trust}));
  task->thread_ = std::jthread([task = task.get()] { task->Run(); });
  return task;
}

PsTask::PsTask(const PsTaskOptions& options, std::unique_ptr<PayloadHost> lanes,
               Clock& clock, MetricsRegistry& metrics)
    : options_(options),
      clock_(clock),
      metrics_registry_(metrics),
      metrics_(metrics),
      inspection_(std::make_shared<TaskInspection>(clock)),
      helpers_(std::make_shared<WorkHelpers>(WorkHelpers::ThreadsForServer())),
      standby_client_(StandbyClient::Create(options.trust)),
      standby_keeper_({.task = NameOf(options.task),
                       .heartbeat =
                           [this](wire::HeartbeatRequest request) {
                             return Tell(std::move(request));
                           },
                       .place_epoch = [this] { return place_epoch_.load(); }},
                      *standby_client_, clock, metrics_),
      server_({.task = NameOf(options.task),
               .incarnation = options.task.incarnation(),
               .memory_limit_bytes = options.memory_limit_bytes,
               .non_finite = options.non_finite,
               .helpers = helpers_,
               .journal_directory = options.journal_directory,
               .tier_directory = options.tier_directory,
               .on_tier_failure =
                   [this](const absl::Status& failure) { Fail(failure); },
               .take_standby =
                   [this](const wire::LoadRequest& order) {
                     return TakeStandby(order);
                   },
               .take_shard = ShardTaker(),
               .on_loaded =
                   [this](const std::shared_ptr<ParameterShard>& shard,
                          const wire::LoadRequest& order, bool is_new) {
                     standby_keeper_.Loaded(shard, order, is_new);
                   },
               .trace = &inspection_->recorder()},
              clock, metrics_),
      standbys_({.task = NameOf(options.task),
                 .incarnation = options.task.incarnation(),
                 .memory_limit_bytes = options.memory_limit_bytes,
                 .tier_directory = options.tier_directory,
                 .own_bytes = [this] { return server_.shard_bytes(); },
                 .has_own_journals = !options.journal_directory.empty(),
                 .helpers = helpers_,
                 .on_lost_primary = options.on_lost_primary}),
      lanes_(std::move(lanes)),
      service_(
          server_, metrics_, options.buffer_bytes, lanes_.get(),
          {.rights = options.rights, .incarnation = options.task.incarnation()},
          &standbys_) {
  inspection_->ShowFirst([this] { return server_.BusiestThread(); });
}

PsTask::~PsTask() {
  const std::shared_ptr<ChiefSession> session = BeginStop();
  if (session != nullptr) session->Stop();
}

absl::Status PsTask::Wait() {
  absl::MutexLock lock(&mu_);
  auto has_result = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return result_.has_value();
  };
  mu_.Await(absl::Condition(&has_result));
  return *result_;
}

void PsTask::Stop() {
  const std::shared_ptr<ChiefSession> session = BeginStop();
  if (session == nullptr) return;
  AwaitCheckpoint(*session);
  session->Stop();
}

std::shared_ptr<ChiefSession> PsTask::BeginStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
  return session_;
}

void PsTask::Fail(const absl::Status& failure) {
  absl::MutexLock lock(&mu_);
  failure_.Update(failure);
}

bool PsTask::has_failed() const {
  absl::MutexLock lock(&mu_);
  return !failure_.ok();
}

// While others train, a checkpoint needs this shard. So a ps without updates to
// lose waits for one as well: the checkpoint then also has the updates of
// another ps that is told to stop next.
void PsTask::AwaitCheckpoint(ChiefSession& session) {
  using Updates = ParameterServer::Updates;
  server_.Seal();
  if (server_.holding().run_id.empty()) return;
  if (session.state().phase() < wire::TRAINING) {
    // It may have begun since the last heartbeat.
    session
        .AwaitLeave(kFreshStateLimit, absl::ZeroDuration(),
                    [&session, before = session.answers()] {
                      return session.answers() > before;
                    })
        .IgnoreError();
  }
  const Updates updates = server_.updates();
  bool is_unsaved = updates == Updates::kUnsaved;
  const bool is_needed = session.state().phase() == wire::TRAINING ||
                         session.state().phase() == wire::FINISHING;
  if (updates == Updates::kStaying || (!is_unsaved && !is_needed)) {
    LOG(INFO) << "told to stop: nothing is lost with this ps";
    return;
  }
  LOG(INFO) << "told to stop: waiting for a checkpoint, for at most "
            << absl::FormatDuration(options_.drain_timeout);
  const absl::Time end = clock_.Now() + options_.drain_timeout;
  absl::Status status;
  bool has_changed;
  do {
    has_changed = false;
    status = session.AwaitLeave(
        end - clock_.Now(),
        is_unsaved ? options_.drain_silence : absl::ZeroDuration(),
        [this, is_unsaved, &has_changed] {
          const Updates now = server_.updates();
          // What is saved still waits for the others', but not for a chief that
          // has ended.
          has_changed =
              now == (is_unsaved ? Updates::kSaved : Updates::kUnsaved);
          return has_changed || now == Updates::kStaying;
        });
    is_unsaved ^= has_changed;
  } while (status.ok() && has_changed);
  if (status.ok()) {
    LOG(INFO) << (HasEnded(session.state())
                      ? "leaving: the job has ended"
                      : "leaving: the checkpoint is complete");
  } else if (server_.updates() != Updates::kUnsaved) {
    LOG(INFO) << "leaving: nothing is lost with this ps (" << status.message()
              << ")";
  } else {
    LOG(WARNING)
        << "leaving without a checkpoint: the updates since the newest "
           "one are lost: "
        << status.message();
  }
}

void PsTask::Run() {
  absl::Status result = Serve();
  {
    absl::MutexLock lock(&mu_);
    result_ = failure_.ok() ? std::move(result) : failure_;
  }
  options_.on_end();
}

absl::Status PsTask::Serve() {
  ASSIGN_OR_RETURN(const std::shared_ptr<ChiefSession> session, Join());
  bool stopped;
  {
    absl::MutexLock lock(&mu_);
    session_ = session;
    stopped = stopping_;
  }
  if (stopped) session->Stop();
  standby_keeper_.Start();
  rpc_server_->SetServing(true);
  const absl::Status result = AwaitEnd(*session);
  Drain();
  session->Leave(/*completed_steps=*/0);
  return result;
}

absl::StatusOr<std::shared_ptr<ChiefSession>> PsTask::Join() {
  ChiefSession::Options session;
  session.task = options_.task;
  session.metrics_address = options_.metrics_address;
  session.chief_timeout = options_.chief_timeout;
  session.inspection = inspection_;
  session.describe = [this](wire::RegisterRequest& request) {
    const ParameterServer::Holding holding = server_.holding();
    request.set_run_id(holding.run_id);
    request.set_layout(holding.layout);
    if (!options_.acting) return;
    request.set_acting_address(WithPort(options_.acting->address, port()));
    request.set_acting_order(options_.acting->order);
  };
  session.report = [this](wire::HeartbeatRequest& request) {
    Describe(request);
  };
  session.on_registered = [this](const wire::RegisterResponse&,
                                 const wire::RegisterResponse& answer) {
    place_epoch_ = std::max(place_epoch_.load(), answer.place_epoch());
    server_.Registered(answer.chief_epoch(), answer.checkpoint_directory());
    return absl::OkStatus();
  };
  return ChiefSession::Join(
      ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                          Callee::Chief(options_.trust)),
      std::move(session), clock_, metrics_registry_,
      [this] { return stopping(); });
}

void PsTask::Describe(wire::HeartbeatRequest& request) {
  request.set_updates(server_.progress());
  const ParameterServer::Holding holding = server_.holding();
  request.set_run_id(holding.run_id);
  request.set_layout(holding.layout);
  *request.mutable_ps_load() = server_.LoadNow();
}

absl::StatusOr<wire::HeartbeatResponse> PsTask::Tell(
    wire::HeartbeatRequest request) {
  std::shared_ptr<ChiefSession> session;
  {
    absl::MutexLock lock(&mu_);
    session = session_;
  }
  if (session == nullptr) {
    return absl::UnavailableError("this task has not registered yet");
  }
  *request.mutable_task() = options_.task;
  Describe(request);
  absl::StatusOr<wire::HeartbeatResponse> answer =
      session->chief().Heartbeat(request);
  if (answer.ok()) options_.on_answer(*answer);
  return answer;
}

std::function<absl::StatusOr<StandbyShard>(const wire::LoadRequest&)>
PsTask::ShardTaker() {
  if (!options_.acting) return nullptr;
  return [this](const wire::LoadRequest& order) {
    return options_.acting->standbys->TakeShard(RequestFor(order));
  };
}

wire::TakeStandbyRequest PsTask::RequestFor(
    const wire::LoadRequest& order) const {
  wire::TakeStandbyRequest request;
  request.set_run_id(order.run_id());
  request.set_layout(order.order().layout());
  request.set_shard(order.shard());
  request.set_num_shards(order.num_shards());
  request.set_number(order.standby().number());
  request.set_ps_incarnation(order.standby().ps_incarnation());
  request.set_place_epoch(place_epoch_);
  return request;
}

absl::StatusOr<ShardState> PsTask::TakeStandby(const wire::LoadRequest& order) {
  const wire::TakeStandbyRequest request = RequestFor(order);
  if (options_.acting) return options_.acting->standbys->Take(request);
  ASSIGN_OR_RETURN(ShardState state, ShardState::Create(order));
  RETURN_IF_ERROR(standby_client_->TakeStandby(
      order.standby(), request, kTakeDeadline,
      [&state](const wire::StandbyState& piece) {
        if (piece.state_end()) {
          state.set_in_journal(
              {.journal = piece.journal(), .record = piece.journal_record()});
        }
        return state.Append(piece.state());
      }));
  return state;
}

absl::Status PsTask::AwaitEnd(ChiefSession& session) {
  const auto hear = [this](const wire::HeartbeatResponse& state) {
    server_.GoOnAt(state.run_id(), state.global_step());
    options_.on_answer(state);
    return HasEnded(state);
  };
  RETURN_IF_ERROR(session.Await(hear, absl::InfiniteDuration(),
                                [this] { return has_failed(); }));
  const wire::HeartbeatResponse state = session.state();
  if (state.phase() == wire::FAILED) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job has failed: ", state.failure()));
  }
  return absl::OkStatus();
}

void PsTask::Drain() {
  rpc_server_->SetServing(false);
  standby_keeper_.Stop();
  server_.EndWaits();
  service_.Drain();
  rpc_server_->Stop(options_.request_grace);
}

bool PsTask::stopping() const {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

}  // namespace parasol
