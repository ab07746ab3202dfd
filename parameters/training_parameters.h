#ifndef PARASOL_PARAMETERS_TRAINING_PARAMETERS_H_
#define PARASOL_PARAMETERS_TRAINING_PARAMETERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace parasol {

// The parameters of a model, as a training loop sees them: it pulls values,
// computes, and pushes gradients, and does not know who holds the parameters
// and how gradients are added. All that is pulled or pushed is in host memory
// (DeviceParts: what is not).
//
// A pull sees the pushes that the same thread has started before it, whether or
// not they are answered. Some of the rows that it pulls may also have a push
// that was started after it. Thread-safe, unless a class says otherwise.
class TrainingParameters {
 public:
  // Number of gradient elements that are worth a push of their own while the
  // backward pass goes on: with 256 KiB a message's fixed cost no longer
  // matters.
  static constexpr size_t kPackElements = 65536;

  virtual ~TrainingParameters() = default;

  // The values or gradients of one variable: float32, all its elements.
  struct Target {
    size_t variable = 0;
    absl::Span<float> values;
  };
  struct Gradient {
    size_t variable = 0;
    absl::Span<const float> values;
  };

  // Rows of a sparse table: ids.size() x width, in the order of the ids. Ids
  // may be repeated; the gradients of one row are summed.
  struct RowTarget {
    size_t table = 0;
    absl::Span<const uint64_t> ids;
    absl::Span<float> values;
  };
  struct RowGradient {
    size_t table = 0;
    absl::Span<const uint64_t> ids;
    absl::Span<const float> values;
    // How often each id occurs in the examples, of a table with an admission;
    // empty: as often as it is listed.
    absl::Span<const uint32_t> counts = {};
  };

  // The gradient of synchronous training that a push is.
  struct SyncStep {
    // Number of updates that the values had when the gradient was computed from
    // them.
    int64_t step = 0;
    int replica = 0;
  };

  struct PullRequest {
    std::vector<Target> targets;
    std::vector<RowTarget> rows = {};
    // Number of updates that what is pulled must have had; the pull waits for
    // them (synchronous training).
    int64_t min_updates = 0;
  };
  struct PushRequest {
    std::vector<Gradient> gradients;
    // The gradients of rows. A table's gradient counts as one update of the
    // table, even if it has no rows.
    std::vector<RowGradient> rows = {};
    std::optional<SyncStep> sync = std::nullopt;
  };

  // The report on a push or a pull that was carried out.
  struct Outcome {
    // Number of updates that what was pulled or pushed has had: the smallest
    // and the largest over its parts.
    int64_t min_updates = 0;
    int64_t max_updates = 0;
    // True if a part of a synchronous push came after its step was complete.
    bool stale = false;

    // Makes this the outcome of both together.
    void Join(const Outcome& other) {
      min_updates = std::min(min_updates, other.min_updates);
      max_updates = std::max(max_updates, other.max_updates);
      stale |= other.stale;
    }
  };

  // A push or pull in progress. Wait for it, once.
  class Pending {
   public:
    using Outcome = TrainingParameters::Outcome;

    virtual ~Pending() = default;
    // Blocks until it is carried out.
    //   Unavailable  a peer did not answer in time; the message names it. It
    //                may or may not have applied a push: don't repeat the call,
    //                start again as another incarnation.
    //   Cancelled    Stop() was called.
    //   any other    as the class of the parameters says.
    virtual absl::Status Wait() = 0;

    // Blocks for up to `limit`; returns true if Wait() would return at once.
    virtual bool WaitFor(absl::Duration limit) = 0;

    // The outcome; valid after Wait() has returned OK.
    virtual Outcome outcome() const = 0;
  };

  // Starts a pull. The memory of targets and ids must stay until Wait()
  // returns. The pull sees the pushes started before it.
  virtual std::unique_ptr<Pending> Pull(PullRequest request) = 0;

  // Starts a push. The memory of gradients, ids and counts must stay,
  // unchanged, until Wait() returns. It is applied exactly once.
  virtual std::unique_ptr<Pending> Push(PushRequest request) = 0;

  // A push, and the pull behind it. Wait for both.
  struct PushAndPull {
    std::unique_ptr<Pending> push;
    std::unique_ptr<Pending> pull;
  };
  // Starts `push` and then `pull`, as Push() and Pull() do, perhaps as one
  // operation.
  virtual PushAndPull PushPull(PushRequest push, PullRequest pull) {
    auto pushed = Push(std::move(push));
    return {std::move(pushed), Pull(std::move(pull))};
  }

  // Start a pull or push of variables alone.
  std::unique_ptr<Pending> Pull(std::vector<Target> targets) {
    return Pull(PullRequest{.targets = std::move(targets)});
  }
  std::unique_ptr<Pending> Push(std::vector<Gradient> gradients) {
    return Push(PushRequest{.gradients = std::move(gradients)});
  }

  // The peers that a wait is for, and how long one may wait for them.
  struct Awaited {
    // The peers that have not answered everything.
    std::vector<std::string> peers = {};
    // The time since which a peer owes an answer that can't be reached, or
    // refuses to work, the earliest one.
    absl::Time away_since = absl::InfiniteFuture();
    // True if a peer can't be reached, whether or not it owes an answer.
    bool is_cut = false;
    // The last time at which values were known to be loaded or copied for such
    // a peer, which takes as long as it takes.
    absl::Time last_loading = absl::InfinitePast();
    // Number of times that a peer was replaced by one that may lack what was
    // acknowledged: a push of a step that is not complete is sent again.
    int64_t moves = 0;
  };
  // Returns what has no answer yet.
  virtual Awaited Unanswered() const = 0;

  // The wait for one ps.
  struct PeerWait {
    int shard = 0;  // the position of its shard in the placement
    // Time in which it owed an answer.
    absl::Duration owed;
    // Time since its last answer; nullopt if it owes none.
    std::optional<absl::Duration> since = {};
    // Why it can't be reached, or refuses to work; empty if it answers.
    std::string trouble = {};
  };
  // Returns what was waited for each ps; nothing if there are none.
  virtual std::vector<PeerWait> PeerWaits() const { return {}; }

  // Ends all waits with Cancelled. May be called twice, from any thread.
  virtual void Stop() = 0;
};

// A pull or push that is over.
class DonePending : public TrainingParameters::Pending {
 public:
  explicit DonePending(absl::Status status, const Outcome& outcome = {})
      : status_(std::move(status)), outcome_(outcome) {}

  absl::Status Wait() override { return status_; }
  bool WaitFor(absl::Duration) override { return true; }
  Outcome outcome() const override { return outcome_; }

 private:
  const absl::Status status_;
  const Outcome outcome_;
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_TRAINING_PARAMETERS_H_
