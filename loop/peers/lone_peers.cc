#include "loop/peers/lone_peers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

LonePeers::LonePeers(int replicas, ProgramSettings settings, Clock& clock)
    : LocalPeers(replicas), settings_(std::move(settings)), clock_(clock) {}

LonePeers::~LonePeers() { ShowChief(settings_, nullptr); }

absl::StatusOr<int64_t> LonePeers::Begin(ParameterStore& store,
                                         const std::vector<std::string>&) {
  if (settings_.checkpoint_directory.empty()) return 0;
  chief_ = std::make_unique<ProgramChief>(
      ProgramChief::Options{.job = JobOfProgram(store.job(), settings_),
                            .replicas = replicas(),
                            .checkpoint_timeout = settings_.checkpoint_timeout,
                            .is_stopping = [this] { return stopping_.load(); },
                            .shown = ShownBy(settings_)},
      clock_, MetricsOf(settings_, own_metrics_));
  ShowChief(settings_, chief_.get());
  ASSIGN_OR_RETURN(step_, chief_->Start(store));
  chief_->GoOnWith([&store](ShardWriter& writer) { return store.Save(writer); },
                   step_);
  return step_;
}

absl::StatusOr<bool> LonePeers::Commit(const Iteration& iteration,
                                       ParameterStore&) {
  RETURN_IF_ERROR(CheckFollows(iteration, step_));
  step_ = iteration.step;
  if (chief_ != nullptr) return chief_->Commit(iteration);
  return !stopping_;
}

absl::Status LonePeers::End(const absl::Status& result) {
  RETURN_IF_ERROR(result);
  if (chief_ != nullptr) return chief_->End();
  return stopping_
             ? absl::CancelledError(absl::StrCat("stopped at step ", step_))
             : absl::OkStatus();
}

}  // namespace parasol
