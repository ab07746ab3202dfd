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
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/client/chief_session.h"
#include "proto/chief.pb.h"

namespace parasol {

// Blocks until every shard has a place and returns the placement. Returns
// early, with a result that must not be used, when the job has ended. Polls
// `is_stopping` while it waits. A shard that was lost while others train has no
// place until it is loaded again.
//   Unavailable  a shard has no place within `limit`; the message names it.
//   Cancelled    `is_stopping` returned true.
//   any other    as for ChiefSession::Await().
absl::StatusOr<wire::GetPlacementResponse> AwaitPlacement(
    ChiefSession& session, absl::Duration limit,
    const std::function<bool()>& is_stopping);

// Returns why a shard has refused the worker's variables as others: Unavailable
// if the chief's variables are not those that the session joined any more, and
// the worker has to start again; otherwise why the job has failed, or `refusal`
// if it has ended in another way. Waits for the chief's next answers until one
// of these is so, for a while; Cancelled once `is_stopping` returns true.
absl::Status WhyRefused(ChiefSession& session, const absl::Status& refusal,
                        Clock& clock, const std::function<bool()>& is_stopping);

inline bool HasEnded(const wire::HeartbeatResponse& state) {
  return state.phase() == wire::COMPLETE || state.phase() == wire::FAILED;
}

// Watches the job on a thread of its own, from construction to destruction.
// Tells the client of the shards, where there is one, about shards that restart
// or move, and the loop's owner about a job that ends elsewhere.
class PlacementFollower {
 public:
  struct Options {
    // The session's placement_version(), read before the placement that the
    // client has was requested, so that no change in between is missed.
    int64_t known_version = 0;
    // The job is complete. Either on_complete or on_lost is called, at most
    // once.
    std::function<void()> on_complete;
    // The loop can't go on: FailedPrecondition, the job has failed, or
    // Unavailable, the variables are of another run or placed in another way
    // and the worker has to start again.
    std::function<void(absl::Status)> on_lost;
    // ParameterClient::Update() and ShardsAreLoading() of who has a placement.
    std::function<absl::Status(const wire::GetPlacementResponse&)>
        on_placement = [](const auto&) { return absl::OkStatus(); };
    std::function<void(absl::Span<const int> shards)> on_loading =
        [](absl::Span<const int>) {};
    // Returns true if operations wait for a shard that can't be reached: it may
    // be elsewhere, and the chief is asked before its next heartbeat says so.
    std::function<bool()> is_away = [] { return false; };
  };

  // All arguments must outlive this object.
  PlacementFollower(Options options, ChiefSession& session, Clock& clock);
  ~PlacementFollower();

 private:
  void Follow();
  // Returns false if there is nothing more to follow.
  bool Look(const wire::HeartbeatResponse& state);
  // Waits until it is time to look again. Returns false at the end.
  bool AwaitLook();

  const Options options_;
  ChiefSession& session_;
  Clock& clock_;
  int64_t known_version_;
  // Number of looks in a row at which a shard was away.
  int away_looks_ = 0;
  int64_t answers_ = 0;  // ChiefSession::answers() at the last look

  absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_PLACEMENT_FOLLOWER_H_
