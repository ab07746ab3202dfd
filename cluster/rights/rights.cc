#include "cluster/rights/rights.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr TaskRoles kTasks = {.ps = true, .worker = true, .evaluator = true};
constexpr TaskRoles kWorkers = {.worker = true};
constexpr TaskRoles kPs = {.ps = true};

// The rows of all Methods come first, in the order of the enumeration.
constexpr RightsRow kTable[] = {
    {"parasol.wire.ChiefService.Register", Caller::kTaskItself, kTasks},
    {"parasol.wire.ChiefService.Heartbeat", Caller::kTaskItself, kTasks},
    {"parasol.wire.ChiefService.GetPlacement", Caller::kTaskItself, kWorkers},
    {"parasol.wire.ChiefService.ClaimSteps", Caller::kTaskItself, kWorkers},
    {"parasol.wire.ChiefService.ReportFailure", Caller::kTaskItself, kWorkers},
    {"parasol.wire.ChiefService.Leave", Caller::kTaskItself, kTasks},
    {"parasol.wire.ChiefService.GetStatus", Caller::kMember},
    {"parasol.wire.ChiefService.Inspect", Caller::kMember},
    {"parasol.wire.ParameterService.Load", Caller::kChief},
    {"parasol.wire.ParameterService.Snapshot", Caller::kChief},
    {"parasol.wire.ParameterService.PrepareSnapshot", Caller::kChief},
    {"parasol.wire.ParameterService.Exchange", Caller::kTaskItself, kWorkers},
    {"parasol.wire.ParameterService.Follow", Caller::kTaskItself, kPs},
    {"parasol.wire.ParameterService.TakeStandby", Caller::kTaskItself, kPs},
    // Probes of the platform have no keys.
    {"grpc.health.v1.Health.", Caller::kAnybody},
    // A model is served to whoever reaches the port, as TensorFlow Serving's.
    {"tensorflow.serving.PredictionService.", Caller::kAnybody},
    {"tensorflow.serving.ModelService.", Caller::kAnybody},
};

const RightsRow& RowOf(Method method) {
  return kTable[static_cast<size_t>(method)];
}

std::string NameOf(const wire::Task& task) {
  return absl::StrCat(ShownText(task.role()), "/", task.index());
}

// Returns "a ps or worker, as itself".
std::string CallersOf(const RightsRow& row) {
  switch (row.caller) {
    case Caller::kAnybody:
      return "anybody";
    case Caller::kMember:
      return "the job's tasks and operators";
    case Caller::kChief:
      return "the job's chief";
    case Caller::kTaskItself:
      break;
  }
  return absl::StrCat(
      "a ", row.tasks.ps ? "ps, " : "", row.tasks.worker ? "worker" : "",
      row.tasks.evaluator ? " or evaluator" : "", " of the job, as itself");
}

}  // namespace

absl::Span<const RightsRow> RightsTable() { return kTable; }

const RightsRow* FindRights(absl::string_view full_name) {
  for (const RightsRow& row : kTable) {
    const bool is_row = absl::EndsWith(row.name, ".")
                            ? absl::StartsWith(full_name, row.name)
                            : full_name == row.name;
    if (is_row) return &row;
  }
  return nullptr;
}

absl::Status Rights::Check(Method method,
                           const std::optional<PeerIdentity>& peer,
                           const wire::Task& task) const {
  const RightsRow& row = RowOf(method);
  if (!peer || MayCall(row, *peer, task)) return absl::OkStatus();
  const absl::string_view name = row.name.substr(row.name.rfind('.') + 1);
  return absl::PermissionDeniedError(absl::StrCat(
      peer->role == PeerRole::kUnknown
          ? "a peer whose certificate names no task"
          : peer->ToString(),
      " may not call ", name,
      task.role().empty() ? "" : absl::StrCat(" as ", NameOf(task)), ": only ",
      CallersOf(row), " may"));
}

bool Rights::MayCall(const RightsRow& row, const PeerIdentity& peer,
                     const wire::Task& task) const {
  if (row.caller == Caller::kAnybody) return true;
  if (peer.role == PeerRole::kUnknown) return false;
  switch (row.caller) {
    case Caller::kAnybody:
    case Caller::kMember:
      return true;
    case Caller::kChief:
      return IsChief(peer);
    case Caller::kTaskItself:
      return ((row.tasks.ps && task.role() == "ps") ||
              (row.tasks.worker && task.role() == "worker") ||
              (row.tasks.evaluator && task.role() == "evaluator")) &&
             IsTask(peer, task);
  }
  return false;
}

bool Rights::IsChief(const PeerIdentity& peer) const {
  return peer.role == PeerRole::kChief ||
         (options_.worker0_is_chief && peer.role == PeerRole::kWorker &&
          peer.index == 0);
}

bool Rights::IsTask(const PeerIdentity& peer, const wire::Task& task) const {
  if (PeerRoleName(peer.role) == task.role()) {
    // One that acts for a lost ps has the keys of the ps in whose process it
    // is. The chief knows whether it may.
    const bool acts = peer.role == PeerRole::kPs && task.has_host_index();
    return peer.index == (acts ? task.host_index() : task.index());
  }
  // The part of worker 0 that has variables is a ps to the chief.
  return peer.role == PeerRole::kWorker && peer.index == 0 &&
         task.role() == "ps" && options_.state_place == task.index();
}

}  // namespace parasol
