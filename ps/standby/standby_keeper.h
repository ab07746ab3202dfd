#ifndef PARASOL_PS_STANDBY_STANDBY_KEEPER_H_
#define PARASOL_PS_STANDBY_STANDBY_KEEPER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/client/standby_client.h"
#include "cluster/rpc/follow_message.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/ps_metrics.h"
#include "ps/standby/standby_duty.h"

namespace parasol {

// Has a shard's standby made, and made again when it is lost: a StandbyDuty
// with a lock, a clock and threads. One tells the chief, in heartbeats of its
// own, at once when pushes wait for its answer; one sends the shard's state and
// pushes. Thread-safe.
//
// Shutdown: Stop(), then destroy the keeper. It may outlive the ps's server,
// which calls Loaded() until it ends.
class StandbyKeeper {
 public:
  // Time without progress after which a standby that is behind is given up.
  static constexpr absl::Duration kStall = absl::Seconds(10);

  struct Options {
    // Name of the ps in the log: "ps/0".
    std::string task;
    // Sends a heartbeat that has the report; returns its answer.
    std::function<absl::StatusOr<wire::HeartbeatResponse>(
        wire::HeartbeatRequest request)>
        heartbeat;
    // Returns the place_epoch of this process.
    std::function<int64_t()> place_epoch;
  };

  // `client`, `clock` and `metrics` must outlive the keeper.
  StandbyKeeper(Options options, StandbyClient& client, Clock& clock,
                PsMetrics& metrics);
  ~StandbyKeeper() { Stop(); }

  // Starts the threads, once the ps has registered. Called once.
  void Start() ABSL_LOCKS_EXCLUDED(threads_mu_);

  // ParameterServer::Options::on_loaded.
  void Loaded(const std::shared_ptr<ParameterShard>& shard,
              const wire::LoadRequest& order, bool is_new)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Ends and joins the threads. May be called twice.
  void Stop() ABSL_LOCKS_EXCLUDED(threads_mu_, mu_);

 private:
  // A shard that has a standby, and its order.
  struct Primary {
    std::shared_ptr<ParameterShard> shard;
    wire::LoadRequest order;
  };

  void RunReports() ABSL_LOCKS_EXCLUDED(mu_);
  void Report() ABSL_LOCKS_EXCLUDED(mu_);
  void RunStreams() ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the standby and sends it what it is to have, until it is lost.
  void Follow(const Primary& primary, const wire::StandbyPlace& place)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Send(const Primary& primary, const wire::StandbyPlace& place,
                    StandbyCall& call) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SendState(const Primary& primary, StandbyCall& call)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SendPushes(const Primary& primary, StandbyCall& call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Writes to the call. EndStalledCall() ends one that takes longer than
  // Patience().
  bool Write(StandbyCall& call, absl::Span<const FollowMessage> messages)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndStalledCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Longest time for which the standby may take nothing.
  absl::Duration Patience() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Hears the standby's answers.
  class Answers;
  // Takes an answer of the stream that there is.
  //   InvalidArgument  it says what can't be.
  absl::Status Hear(const Primary& primary, const wire::FollowResponse& answer)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns why the stream has to end; OK if it need not.
  absl::Status CheckWanted(const Primary& primary) const
      ABSL_LOCKS_EXCLUDED(mu_);
  FollowMessage HeaderFor(const Primary& primary,
                          const wire::StandbyPlace& place) const;
  // Gives the shard's feed the rule of now. Call Release() when the lock is
  // free.
  void UseRule() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  StandbyClient& client_;
  Clock& clock_;
  PsMetrics& metrics_;

  mutable absl::Mutex mu_;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  StandbyDuty duty_ ABSL_GUARDED_BY(mu_);
  Primary primary_ ABSL_GUARDED_BY(mu_);
  // The stream that there is; null: none. And whether it has ended.
  StandbyCall* call_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  // True from the state's end to the first answer.
  bool is_loading_ ABSL_GUARDED_BY(mu_) = false;
  // The beginning of the write that is under way.
  absl::Time writing_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // True if a thread has something to look at.
  bool has_report_ ABSL_GUARDED_BY(mu_) = false;
  bool has_work_ ABSL_GUARDED_BY(mu_) = false;
  int64_t chief_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time urgent_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Held while the threads are started, or joined.
  absl::Mutex threads_mu_;
  std::thread reports_ ABSL_GUARDED_BY(threads_mu_);
  std::thread streams_ ABSL_GUARDED_BY(threads_mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_STANDBY_STANDBY_KEEPER_H_
