#ifndef PARASOL_LOOP_PEERS_LONE_PEERS_H_
#define PARASOL_LOOP_PEERS_LONE_PEERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "loop/peers/local_peers.h"
#include "loop/peers/program_chief.h"
#include "loop/peers/program_settings.h"

namespace parasol {

// The only process of a program, with all of its replicas. It takes the
// checkpoint directory, goes on from the newest checkpoint, writes those that
// are due when an iteration ends, and records the training beside them. Without
// a directory nothing outlives the process.
class LonePeers : public LocalPeers {
 public:
  // `replicas`: number of replicas of the process. No checkpoints.
  explicit LonePeers(int replicas) : LonePeers(replicas, {}, Clock::Real()) {}
  // `clock` must outlive this object, as must the store that Begin() is given.
  LonePeers(int replicas, ProgramSettings settings, Clock& clock);
  ~LonePeers() override;

  using Peers::Begin;
  // Fails also as LoneChief::Start() does.
  absl::StatusOr<int64_t> Begin(ParameterStore& store,
                                const std::vector<std::string>& parts) override;
  TrainingReporter* reporter() override {
    return chief_ == nullptr ? nullptr : &chief_->reporter();
  }
  absl::StatusOr<bool> Commit(const Iteration& iteration,
                              ParameterStore& store) override;
  absl::Status End(const absl::Status& result) override;
  void Stop() override { stopping_ = true; }

 private:
  const ProgramSettings settings_;
  Clock& clock_;
  MetricsRegistry own_metrics_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<ProgramChief> chief_;  // null: there are no checkpoints
  int64_t step_ = 0;                     // number of committed iterations
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_LONE_PEERS_H_
