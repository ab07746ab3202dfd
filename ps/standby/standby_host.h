#ifndef PARASOL_PS_STANDBY_STANDBY_HOST_H_
#define PARASOL_PS_STANDBY_STANDBY_HOST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/work_helpers.h"
#include "cluster/rpc/payload.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_state.h"

namespace parasol {

// The standbys that a ps has of other ps's shards: shards that take the pushes
// of their primaries' streams and serve nobody, until a successor of the
// primary takes the state. Independent of the transport. Thread-safe.
class StandbyHost {
 public:
  struct Options {
    // Name of the ps in errors: "ps/1".
    std::string task;
    // The process, as the chief alone knows it.
    uint64_t incarnation = 0;
    uint64_t memory_limit_bytes = UINT64_MAX;
    // LoadLimits::tier_directory.
    std::string tier_directory = {};
    // Returns the bytes of the ps's own shard, which the limit is for, too.
    std::function<uint64_t()> own_bytes = [] { return uint64_t{0}; };
    // True if journals of this process are where other ps don't look for them.
    bool has_own_journals = false;
    std::shared_ptr<WorkHelpers> helpers = nullptr;
    // Called when the stream of a primary has ended whose standby is whole.
    std::function<void()> on_lost_primary = [] {};
  };

  explicit StandbyHost(Options options) : options_(std::move(options)) {}
  ~StandbyHost() { EndAll(); }

  // The host's end of one stream of a primary. Its functions may be called by
  // one thread.
  class Stream;

  // Begins a stream. The standby that a former stream of the shard has made is
  // let go. `cut` is called, perhaps by another thread, when nobody reads the
  // stream any more.
  //   Unavailable         the header is meant for another process.
  //   PermissionDenied    it does not show the chief's ticket.
  //   FailedPrecondition  a newer process has the shard's place.
  absl::StatusOr<std::unique_ptr<Stream>> Follow(
      const wire::FollowHeader& header, std::function<void()> cut)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the state of the standby. It takes nothing from its primary from
  // then on. May be called again.
  //   Unavailable         the request is meant for another process.
  //   NotFound            there is no standby of this number; the message says
  //                       why.
  //   FailedPrecondition  a newer process has taken it.
  absl::StatusOr<ShardState> Take(const wire::TakeStandbyRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the standby itself: nobody else may have it any more. Fails as
  // Take() does.
  absl::StatusOr<StandbyShard> TakeShard(
      const wire::TakeStandbyRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the standbys that are whole and have lost their primaries' streams.
  std::vector<wire::LostPrimary> LostPrimaries() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a standby that is whole has the number, and whoever acts
  // for its primary here finds the shard's journal, if it has one.
  bool MayAct(uint64_t number) const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all streams and lets the standbys go. Does not block.
  void EndAll() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Standby;

  // Lets the standby before go for a stream with this header.
  //   FailedPrecondition  a newer process has the shard's place.
  absl::Status Replace(Standby& before, const wire::FollowHeader& header) const;
  absl::Status CheckProcess(uint64_t public_number) const;
  // Gives a standby to the process that the request is of, and ends its stream.
  // Called with the standby's lock held. Fails as Take() does.
  absl::Status Claim(Standby& standby, const wire::TakeStandbyRequest& request)
      const ABSL_NO_THREAD_SAFETY_ANALYSIS;
  std::vector<std::shared_ptr<Standby>> All() const ABSL_LOCKS_EXCLUDED(mu_);
  std::shared_ptr<Standby> Find(uint32_t shard) const ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  // The newest one of each shard.
  std::map<uint32_t, std::shared_ptr<Standby>> standbys_ ABSL_GUARDED_BY(mu_);
};

class StandbyHost::Stream {
 public:
  ~Stream();

  using Tensors = std::optional<absl::Span<const PayloadView>>;

  // Takes a message, which follows the header. Its records are whole, or they
  // end before `tensors`, which has the tensors of all (cluster/rpc/
  // follow_frame.h); neither is kept. Returns what is to be answered; nullopt:
  // nothing. After an error the standby is none any more.
  //   FailedPrecondition  the standby has been given to the primary's
  //                       successor, or another stream has taken its place.
  //   InvalidArgument, DataLoss, ResourceExhausted  the message says what can't
  //                       be taken.
  absl::StatusOr<std::optional<wire::FollowResponse>> Take(
      const wire::FollowRequest& message, Tensors tensors = std::nullopt);

 private:
  friend class StandbyHost;
  Stream(const Options& options, std::shared_ptr<Standby> standby)
      : options_(options), standby_(std::move(standby)) {}

  // Functions that are called with the standby's lock held.
  absl::StatusOr<std::optional<wire::FollowResponse>> TakeNow(
      const wire::FollowRequest& message,
      Tensors tensors) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::Status TakeRecords(const wire::FollowRequest& message,
                           Tensors tensors) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::Status MakeShard() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  absl::Status Change(const wire::LoadRequest& change)
      ABSL_NO_THREAD_SAFETY_ANALYSIS;

  absl::StatusOr<ShardLoad> LoadFrom(const std::string& directory) const;

  const Options& options_;
  const std::shared_ptr<Standby> standby_;
};

}  // namespace parasol

#endif  // PARASOL_PS_STANDBY_STANDBY_HOST_H_
