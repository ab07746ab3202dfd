#include "worker/mirrored/state_orders.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/checkpoint_reader.h"

namespace parasol {
namespace {

absl::Status LoadInto(MirroredState& state, const std::string& checkpoint) {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalParameters> parameters,
                   state.MakeParameters());
  int64_t step = 0;
  if (!checkpoint.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                     CheckpointReader::Open(checkpoint));
    RETURN_IF_ERROR(parameters->Restore(*reader)) << checkpoint;
    step = reader->manifest().global_step();
  }
  state.Load(std::move(parameters), step);
  LOG(INFO) << (checkpoint.empty() ? "initial values"
                                   : absl::StrCat("loaded ", checkpoint));
  return absl::OkStatus();
}

}  // namespace

void StateOrders::Serve(MirroredState* state, std::string run_id,
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
  absl::MutexLock lock(&mu_);
  return state_ != nullptr && state_->version().is_there() &&
         state_->version().epoch != 0;
}

absl::StatusOr<MirroredState*> StateOrders::Admit(
    const wire::OrderHeader& order, const std::string& run_id) {
  RETURN_IF_ERROR(gate_.Admit(order));
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
  ASSIGN_OR_RETURN(MirroredState* const state,
                   Admit(request.order(), request.run_id()));
  absl::MutexLock lock(&load_mu_);
  if (!state->version().is_there()) {
    state->SetGoesOnAt(request.global_step());
    RETURN_IF_ERROR(LoadInto(*state, request.checkpoint())) << task_;
  }
  return wire::LoadResponse();
}

absl::StatusOr<wire::PrepareSnapshotResponse> StateOrders::PrepareSnapshot(
    const wire::PrepareSnapshotRequest& request) {
  ASSIGN_OR_RETURN(MirroredState* const state,
                   Admit(request.order(), request.run_id()));
  ASSIGN_OR_RETURN(const int64_t step, state->Hold(), _ << task_);
  wire::PrepareSnapshotResponse response;
  response.set_min_updates(step);
  response.set_max_updates(step);
  return response;
}

absl::StatusOr<wire::SnapshotResponse> StateOrders::Snapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  ASSIGN_OR_RETURN(MirroredState* const state,
                   Admit(request.order(), request.run_id()));
  RETURN_IF_ERROR(
      gate_.CheckSnapshotFile(request.directory(), request.file_name()));
  std::optional<int64_t> cut;
  if (request.has_at_updates()) cut = request.at_updates();
  const std::string path =
      absl::StrCat(request.directory(), "/", request.file_name());
  ASSIGN_OR_RETURN(const durable::CheckpointFile file,
                   state->Save(cut, path, is_cancelled), _ << task_);
  wire::SnapshotResponse response;
  response.set_bytes(file.bytes());
  response.set_crc32c(file.crc32c());
  return response;
}

}  // namespace parasol
