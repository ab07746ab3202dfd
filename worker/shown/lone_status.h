#ifndef PARASOL_WORKER_SHOWN_LONE_STATUS_H_
#define PARASOL_WORKER_SHOWN_LONE_STATUS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/page_server.h"
#include "coordinator/page/job_page.h"
#include "coordinator/watch/worker_paces.h"
#include "proto/chief.pb.h"
#include "worker/shown/lone_inspection.h"

namespace parasol {

// Returns the name of a process of a program: "worker/1".
std::string NameOfWorker(int index);

// The things that a process which is its own chief shows to those who look on:
// its status, a page about its job, and inspections. It asks the training,
// which may come and go. The thread that trains may stand still: what it has
// done for long is the first finding then, unless it waits for another process
// that is stopped or gone. The other processes of a program tell it with
// heartbeats how they go. Thread-safe.
class LoneStatus {
 public:
  // Time from which on a thing that goes on is a finding.
  static constexpr absl::Duration kLong = absl::Milliseconds(2500);
  // Time after which a process that is not heard is not there.
  static constexpr absl::Duration kLease = absl::Seconds(10);
  // The track of what is done between steps.
  static constexpr char kOrders[] = "orders";

  // A thing that the training thread does.
  struct Doing {
    wire::Finding::Kind kind = wire::Finding::KIND_UNSPECIFIED;
    std::string what;  // "waiting for a batch"
    absl::Time since;
  };
  // Asked for the job's status, and for the part of a step that goes on.
  struct Training {
    std::function<wire::JobStatus()> status = nullptr;
    std::function<std::optional<Doing>()> part = nullptr;
  };

  // `untold`: what the job waits for while nobody can be asked. `clock` must
  // outlive this object.
  LoneStatus(Clock& clock, std::string untold);

  // Takes whom to ask, from now on; nobody, if it has no functions. What it
  // replaces is asked once more, for the last status on the page, and not any
  // more when this returns.
  void Ask(Training training) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes the totals of what the training has done: the pace of this process,
  // which is worker 0, is compared with the others'.
  void Report(const wire::WorkerTotals& totals) ABSL_LOCKS_EXCLUDED(mu_);

  // Says how many processes the program has, with this one.
  void SetProcesses(int processes) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes what another one shows: a Heartbeat of proto/chief.proto.
  //   InvalidArgument  it is none of them.
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request) ABSL_LOCKS_EXCLUDED(mu_);
  // Answers an Inspect of proto/chief.proto.
  absl::StatusOr<wire::InspectResponse> Inspect(
      const wire::InspectRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the job's status. It may be called by any thread, as may PageAt().
  wire::JobStatus Status() const ABSL_LOCKS_EXCLUDED(mu_);
  // Shows the status on the page, if anybody can be asked.
  void ShowOnPage() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns what is at a path of the page.
  PageServer::Page PageAt(absl::string_view path);

  JobPage& page() { return page_; }
  LoneInspection& inspection() { return inspection_; }

  // A thing that the training thread does between steps, until it is
  // destroyed. Traces show it.
  class Activity {
   public:
    // `status`: null, or must outlive this object. The others are literals:
    // the span's name and track, and what it is to people.
    Activity(LoneStatus* status, const char* name, const char* track,
             wire::Finding::Kind kind, const char* what);
    ~Activity();
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

   private:
    LoneStatus* const status_;
    const char* const name_;
    const char* const track_;
    absl::Time begin_;
  };

 private:
  // Another process of the program.
  struct Peer {
    uint64_t incarnation = 0;
    absl::Time heard = absl::InfinitePast();
  };

  std::optional<Doing> NowDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  wire::JobStatus NowShown() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  wire::JobStatus Untold(absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if another process has been heard: others may not tell how
  // they go.
  bool HearsPeers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddPeers(absl::Time now, wire::JobStatus& status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Names those that are gone, for which the job waits.
  void AddLost(absl::Time now, wire::JobStatus& status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  const std::string untold_;
  JobPage page_;
  LoneInspection inspection_;
  mutable absl::Mutex mu_;
  Training training_ ABSL_GUARDED_BY(mu_);
  std::optional<Doing> activity_ ABSL_GUARDED_BY(mu_);
  // Position: the index of the worker, less 1.
  std::vector<Peer> peers_ ABSL_GUARDED_BY(mu_);
  WorkerPaces paces_ ABSL_GUARDED_BY(mu_){PaceLimits(), /*in_step=*/true};
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SHOWN_LONE_STATUS_H_
