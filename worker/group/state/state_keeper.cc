#include "worker/group/state/state_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"

namespace parasol {
namespace {

// Less than half of a lease: one call may go into a dead connection.
constexpr absl::Duration kChiefCallDeadline = absl::Seconds(4);
// Silence after which a worker that leaves expects no checkpoint of the chief.
constexpr absl::Duration kChiefSilence = absl::Seconds(10);

}  // namespace

StateKeeper::StateKeeper(Options options, Clock& clock,
                         MetricsRegistry& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      orders_(options_.task, options_.incarnation),
      service_(orders_) {}

absl::StatusOr<std::unique_ptr<StateKeeper>> StateKeeper::Start(
    Options options, Clock& clock, MetricsRegistry& metrics) {
  std::unique_ptr<StateKeeper> keeper(
      new StateKeeper(std::move(options), clock, metrics));
  ASSIGN_OR_RETURN(
      keeper->server_,
      RpcServer::Start(keeper->options_.listen_address, {&keeper->service_},
                       keeper->options_.trust));
  return keeper;
}

StateKeeper::~StateKeeper() { Leave(); }

template <typename Request>
void StateKeeper::Describe(const wire::RegisterResponse& registration,
                           Request& request) const {
  if (!orders_.HoldsState()) return;
  request.set_run_id(registration.run_id());
  request.set_layout(registration.layout());
}

absl::Status StateKeeper::Join(GroupState& state,
                               const wire::RegisterResponse& registration,
                               std::function<bool()> cancelled) {
  orders_.Serve(&state, registration.run_id(), registration.layout());
  ChiefSession::Options session;
  session.task.set_role("ps");
  session.task.set_index(options_.place);
  session.task.set_incarnation(options_.incarnation);
  session.chief_timeout = options_.chief_timeout;
  session.is_quiet = true;
  session.describe = [this, registration](wire::RegisterRequest& request) {
    Describe(registration, request);
  };
  session.report = [this, registration](wire::HeartbeatRequest& request) {
    Describe(registration, request);
  };
  session.on_registered = [this](const wire::RegisterResponse&,
                                 const wire::RegisterResponse& answer) {
    orders_.Registered(answer.chief_epoch(), answer.checkpoint_directory());
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(
      session_,
      ChiefSession::Join(
          ChiefClient::Create(options_.chief_address, kChiefCallDeadline,
                              Callee::Chief(options_.trust)),
          std::move(session), clock_, metrics_, std::move(cancelled)));
  session_->OnLost([this](const absl::Status& why) {
    options_.on_lost(absl::UnavailableError(absl::StrCat(
        "the chief has this worker load and save no variables any more: ",
        why.message())));
  });
  server_->SetServing(true);
  return absl::OkStatus();
}

void StateKeeper::AwaitCheckpoint(absl::Duration limit) {
  if (session_ == nullptr || !orders_.HoldsUpdates()) return;
  LOG(INFO) << "told to stop: waiting for a checkpoint, for at most "
            << absl::FormatDuration(limit);
  const absl::Status status = session_->AwaitLeave(
      limit, kChiefSilence, [this] { return !orders_.HoldsUpdates(); });
  if (status.ok()) return;
  LOG(WARNING) << "leaving without a checkpoint: if no other worker has the "
                  "variables, their updates since the newest one are lost: "
               << status.message();
}

void StateKeeper::Leave() {
  if (session_ != nullptr) session_->Leave(/*completed_steps=*/0);
  // Null: its address could not be listened on.
  if (server_ != nullptr) server_->Stop(absl::ZeroDuration());
  orders_.Serve(nullptr, "", 0);
}

}  // namespace parasol
