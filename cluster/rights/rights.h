#ifndef PARASOL_CLUSTER_RIGHTS_RIGHTS_H_
#define PARASOL_CLUSTER_RIGHTS_RIGHTS_H_

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/trust/peer_identity.h"
#include "proto/chief.pb.h"

namespace parasol {

// The methods of all services that a task of a job serves.
enum class Method {
  kRegister,
  kHeartbeat,
  kGetPlacement,
  kClaimSteps,
  kReportFailure,
  kLeave,
  kGetStatus,
  kInspect,
  kLoad,
  kSnapshot,
  kPrepareSnapshot,
  kExchange,
  kFollow,
  kTakeStandby,
};

// The peers that may call a method.
enum class Caller {
  // Everybody, also who has proven nothing: the service is meant for others
  // than the job's tasks.
  kAnybody,
  // Every task of the job, and its operators.
  kMember,
  // A task with one of the roles, for itself: as the task that the message
  // names.
  kTaskItself,
  // The task that does the chief's duties.
  kChief,
};

// Roles of tasks that may call a method for themselves.
struct TaskRoles {
  bool ps = false;
  bool worker = false;
  bool evaluator = false;
};

// A row of the table of rights.
struct RightsRow {
  // The full name of a method: "parasol.wire.ChiefService.Register". One that
  // ends in '.' stands for all methods of a service.
  absl::string_view name;
  Caller caller = Caller::kMember;
  // The tasks, with kTaskItself.
  TaskRoles tasks = {};
};

// Returns the table of rights: which peer may call what. It has a row for each
// method that any process of a job serves.
absl::Span<const RightsRow> RightsTable();
// Returns the row of a method with this full name; null if nobody may call it.
const RightsRow* FindRights(absl::string_view full_name);

// The rights of peers at one process of a job. Asked before anything else of a
// message is looked at. Peers that have proven who they are have proven to be
// of the job (Trust). Immutable.
class Rights {
 public:
  struct Options {
    // True if worker 0 does the chief's duties: the cluster has no chief.
    bool worker0_is_chief = false;
    // Index of the ps that worker 0 is to the chief, where it has variables.
    std::optional<int> state_place = std::nullopt;
  };

  explicit Rights(Options options) : options_(std::move(options)) {}
  Rights() : Rights(Options()) {}

  // Returns OK if `peer` may call `method` in a message that names `task`, if
  // it names one. A peer that can't prove anything, as the job has no keys
  // (nullopt), may: who it is can't be told.
  //   PermissionDenied  it may not; the message says who may.
  absl::Status Check(Method method, const std::optional<PeerIdentity>& peer,
                     const wire::Task& task) const;
  absl::Status Check(Method method,
                     const std::optional<PeerIdentity>& peer) const {
    return Check(method, peer, wire::Task());
  }

 private:
  bool MayCall(const RightsRow& row, const PeerIdentity& peer,
               const wire::Task& task) const;
  bool IsChief(const PeerIdentity& peer) const;
  bool IsTask(const PeerIdentity& peer, const wire::Task& task) const;

  Options options_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RIGHTS_RIGHTS_H_
