#include "worker/group/state/state_orders.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 50;

absl::Status CheckIsThere(const GroupState& state) {
  if (state.version().is_there()) return absl::OkStatus();
  return absl::FailedPreconditionError("this worker has no variables yet");
}

// The variables of a checkpoint, or with their initial values.
struct Loaded {
  std::unique_ptr<ParameterStore> parameters;
  int64_t step = 0;
};

absl::StatusOr<Loaded> ReadVariables(const GroupState& state,
                                     const std::string& checkpoint) {
  Loaded loaded;
  ASSIGN_OR_RETURN(loaded.parameters, state.MakeParameters());
  if (checkpoint.empty()) return loaded;
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   CheckpointReader::Open(checkpoint));
  RETURN_IF_ERROR(loaded.parameters->Restore(*reader)) << checkpoint;
  loaded.step = reader->manifest().global_step();
  return loaded;
}

// No job makes as many steps.
absl::Status CheckStep(absl::string_view what, int64_t step) {
  if (step >= 0 && step <= kMaxSteps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", step, " is not from 0 to ", kMaxSteps));
}

}  // namespace

void StateOrders::Serve(GroupState* state, std::string run_id,
                        uint64_t layout) {
  absl::MutexLock lock(&mu_);
  state_ = state;
  run_id_ = std::move(run_id);
  layout_ = layout;
}

bool StateOrders::HoldsState() const {
  absl::MutexLock lock(&mu_);
  return state_ != nullptr && state_->version().is_there();
}

bool StateOrders::HoldsUpdates() const {
  GroupState::Version version;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == nullptr) return false;
    version = state_->version();
  }
  return version.is_there() && version.epoch != 0 && !saved_.Has(version.step);
}

absl::StatusOr<GroupState*> StateOrders::StateFor(
    const wire::OrderHeader& order, const std::string& run_id) const {
  RETURN_IF_ERROR(gate_.Check(order));
  absl::MutexLock lock(&mu_);
  if (state_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(task_, " has no model yet"));
  }
  if (run_id == run_id_ && order.layout() == layout_) return state_;
  return absl::FailedPreconditionError(
      absl::StrCat(task_, " works on run ", run_id_, ", not on run ", run_id,
                   ", or in another layout"));
}

absl::StatusOr<wire::LoadResponse> StateOrders::Load(
    const wire::LoadRequest& request) {
  ASSIGN_OR_RETURN(GroupState* const state,
                   StateFor(request.order(), request.run_id()));
  absl::MutexLock lock(&load_mu_);
  RETURN_IF_ERROR(
      CheckStep("the load request's global_step", request.global_step()))
      << task_;
  Loaded loaded;
  const bool is_there = state->version().is_there();
  if (!is_there) {
    ASSIGN_OR_RETURN(loaded, ReadVariables(*state, request.checkpoint()),
                     _ << task_);
  }
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  if (is_there) {
    state->steps().GoOn();
    return wire::LoadResponse();
  }
  state->SetGoesOnAt(request.global_step());
  state->Load(std::move(loaded.parameters), loaded.step);
  LOG(INFO) << (request.checkpoint().empty()
                    ? "initial values"
                    : absl::StrCat("loaded ", request.checkpoint()));
  return wire::LoadResponse();
}

absl::StatusOr<wire::PrepareSnapshotResponse> StateOrders::PrepareSnapshot(
    const wire::PrepareSnapshotRequest& request) {
  ASSIGN_OR_RETURN(GroupState* const state,
                   StateFor(request.order(), request.run_id()));
  RETURN_IF_ERROR(CheckIsThere(*state)) << task_;
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  ASSIGN_OR_RETURN(const int64_t step, state->steps().Hold(), _ << task_);
  wire::PrepareSnapshotResponse response;
  response.set_min_updates(step);
  response.set_max_updates(step);
  return response;
}

absl::StatusOr<wire::SnapshotResponse> StateOrders::Snapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  ASSIGN_OR_RETURN(GroupState* const state,
                   StateFor(request.order(), request.run_id()));
  RETURN_IF_ERROR(
      gate_.CheckSnapshotFile(request.directory(), request.file_name()));
  std::optional<int64_t> cut;
  if (request.has_at_updates()) cut = request.at_updates();
  RETURN_IF_ERROR(CheckStep("a cut at step", cut.value_or(0))) << task_;
  RETURN_IF_ERROR(CheckIsThere(*state)) << task_;
  RETURN_IF_ERROR(gate_.Accept(request.order()));
  const std::string path =
      CheckpointStore::PathInWorking(request.directory(), request.file_name());
  ASSIGN_OR_RETURN(durable::CheckpointFile file,
                   SaveState(*state, cut, path, is_cancelled, request.stay()),
                   _ << task_);
  file.set_name(request.file_name());
  wire::SnapshotResponse response;
  response.set_bytes(file.bytes());
  response.set_crc32c(file.crc32c());
  if (cut) {
    saved_.Note(request.directory(), request.run_id(), std::move(file), *cut);
  }
  return response;
}

}  // namespace parasol
