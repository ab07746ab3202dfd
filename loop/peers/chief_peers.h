#ifndef PARASOL_LOOP_PEERS_CHIEF_PEERS_H_
#define PARASOL_LOOP_PEERS_CHIEF_PEERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chief/chief_task.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/trust.h"
#include "loop/peers/local_peers.h"
#include "loop/peers/program_settings.h"

namespace parasol {

// The chief of a cluster whose workers run a program with a training loop of
// its own (PsPeers). It runs the same program, for that says what the variables
// are and what they begin with, and leads the cluster when it comes to the
// first step: Begin() returns when the job has ended, with an error that ends
// the program here, and End() returns how it has ended.
//
// Used by one thread, but for Stop().
class ChiefPeers : public LocalPeers {
 public:
  struct Options {
    // The cluster, and this task of it.
    TaskConfig config;
    int replicas = 1;  // of each worker
    ProgramSettings settings = {};
    std::shared_ptr<const Trust> trust = nullptr;
    // Longest absence of a ps, and of all workers.
    absl::Duration peer_timeout = absl::Minutes(5);
  };

  // `clock` must outlive this object.
  ChiefPeers(Options options, Clock& clock);
  ~ChiefPeers() override;

  // Worker 0 prints.
  int place() const override { return -1; }
  int num_places() const override { return options_.config.num_workers; }
  const job::LocalSteps* local_steps() const override {
    return LocalStepsOf(options_.settings);
  }
  //   Cancelled  the job has ended.
  using Peers::Begin;
  absl::StatusOr<int64_t> Begin(ParameterStore& store,
                                const std::vector<std::string>& parts) override;
  absl::StatusOr<bool> Commit(const Iteration& iteration,
                              ParameterStore& store) override;
  absl::Status End(const absl::Status& result) override;
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Leads the cluster. Fails as ChiefTask::Start() and Wait() do.
  absl::Status Lead(ParameterStore& store) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  Clock& clock_;
  MetricsRegistry own_metrics_;
  bool has_led_ = false;
  absl::Status outcome_;  // of the job

  absl::Mutex mu_;
  std::unique_ptr<ChiefTask> task_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> stopping_ = false;
};

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_CHIEF_PEERS_H_
