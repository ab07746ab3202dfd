#ifndef PARASOL_WORKER_PLACEMENT_FOLLOWER_H_
#define PARASOL_WORKER_PLACEMENT_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_session.h"
#include "cluster/client/parameter_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// Where the variables are, once every shard has a place; or until the job has
// ended, or `is_stopping`, which is asked now and then. A shard that was lost
// while others train has no place until it is loaded.
//   Unavailable  not within `limit`: names the shard that is missing.
//   Cancelled    `is_stopping`.
// and the session's errors. Of no use when the job has ended.
absl::StatusOr<wire::GetPlacementResponse> AwaitPlacement(
    ChiefSession& session, absl::Duration limit,
    const std::function<bool()>& is_stopping);

// Whether the variables are no longer those of the run that was joined: their
// worker has to start again.
bool IsAnotherRun(ChiefSession& session);
absl::Status AnotherRunError();

inline bool HasEnded(const wire::HeartbeatResponse& state) {
  return state.phase() == wire::COMPLETE || state.phase() == wire::FAILED;
}

// Tells a training loop's client of shards that restart or move, and the loop's
// owner of a job that ends elsewhere, on a thread of its own, from its
// construction to its destruction.
class PlacementFollower {
 public:
  struct Options {
    // The placement_version() of the session before the placement that
    // `parameters` has was asked for: a change in between is not missed.
    int64_t known_version = 0;
    // Whether another run's variables are of no use to the loop: its step
    // numbers are those of the run that was.
    bool is_synchronous = false;
    // Called once at most, one of both.
    std::function<void()> on_complete;
    // The job has failed, or FailedPrecondition, or AnotherRunError().
    std::function<void(absl::Status)> on_lost;
  };

  // All must outlive it.
  PlacementFollower(Options options, ChiefSession& session,
                    ParameterClient& parameters, Clock& clock);
  ~PlacementFollower();

 private:
  void Follow();
  // False: there is nothing more to follow.
  bool Look(const wire::HeartbeatResponse& state);

  const Options options_;
  ChiefSession& session_;
  ParameterClient& parameters_;
  Clock& clock_;
  int64_t known_version_;

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_PLACEMENT_FOLLOWER_H_
