#include "tests/simulation/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol::simulation {
namespace {

// After this time keepalive ends the connection to a process that does not
// answer (cluster/rpc/channel.cc).
constexpr absl::Duration kKeepalive = absl::Seconds(30);
// Number of a process's calls beyond which ended ones are removed.
constexpr size_t kKeptCalls = 64;

void RemoveEnded(std::vector<std::shared_ptr<PendingCall>>& calls) {
  if (calls.size() < kKeptCalls) return;
  std::erase_if(calls, [](const auto& call) { return call->has_ended(); });
}

}  // namespace

World::World(const Schedule& schedule, const Rules& rules)
    : schedule_(schedule),
      rules_(rules),
      random_(schedule.seed ^ 0x5eed),
      auditor_(schedule),
      loss_(schedule.shape.loss) {}

absl::Time World::Now(const Process& process) const {
  return process.clock_ +
         (loop_.now() - process.clock_set_) * process.clock_rate_;
}

void World::After(Process& process, absl::Duration delay,
                  EventLoop::Action action) {
  Post(process, delay / process.clock_rate_, std::move(action));
}

void World::Post(Process& process, absl::Duration delay,
                 EventLoop::Action action) {
  loop_.At(loop_.now() + delay,
           [this, &process, action = std::move(action)]() mutable {
             Dispatch(process, std::move(action));
           });
}

void World::Dispatch(Process& process, EventLoop::Action action) {
  if (!process.alive_) return;
  if (process.stopped_) {
    process.deferred_.push_back(std::move(action));
    return;
  }
  action();
}

void World::Launch(std::unique_ptr<Process> process) {
  Process& started = *process;
  places_[started.place_].push_back(&started);
  processes_.push_back(std::move(process));
  Trace(&started, "starts");
  started.Start();
}

Process* World::Newest(const TaskId& place) const {
  const auto it = places_.find(place);
  if (it == places_.end()) return nullptr;
  for (auto process = it->second.rbegin(); process != it->second.rend();
       ++process) {
    if ((*process)->alive_) return *process;
  }
  return nullptr;
}

std::vector<Process*> World::Live() const {
  std::vector<Process*> live;
  for (const auto& process : processes_) {
    if (process->alive_) live.push_back(process.get());
  }
  return live;
}

bool World::WasAt(const TaskId& place, int number) const {
  const auto it = places_.find(place);
  return it != places_.end() &&
         std::any_of(
             it->second.begin(), it->second.end(),
             [number](const Process* one) { return one->number() == number; });
}

bool World::IsRefused(const TaskId& place) const {
  const auto it = places_.find(place);
  if (it == places_.end()) return true;
  const bool is_lost = it->second.back()->cut_from_all_;
  const Process* const newest = Newest(place);
  return newest == nullptr ? !is_lost : newest->refuses_;
}

void World::Refuse(Process& process, bool refuses) {
  if (!process.alive_) return;
  Trace(&process, refuses ? "refuses connections" : "refuses none any more");
  process.refuses_ = refuses;
  process.has_refused_ = true;
}

void World::Kill(Process& process) {
  if (!process.alive_) return;
  Trace(&process, "is killed");
  End(process);
}

void World::LoseMachine(Process& process) {
  CutFromAll(process, true);
  Kill(process);
}

void World::Stop(Process& process) {
  if (!process.alive_ || process.stopped_) return;
  Trace(&process, "is stopped");
  process.stopped_ = true;
  Silenced(process);
  if (process.part() != nullptr) Stop(*process.part());
}

void World::Continue(Process& process) {
  if (!process.alive_ || !process.stopped_) return;
  Trace(&process, "goes on");
  process.stopped_ = false;
  process.reachable_since_ = loop_.now();
  for (EventLoop::Action& action : std::exchange(process.deferred_, {})) {
    Dispatch(process, std::move(action));
  }
  if (process.part() != nullptr) Continue(*process.part());
}

void World::CutFromChief(Process& process, bool cut) {
  Trace(&process, cut ? "is cut from the chief" : "reaches the chief again");
  process.cut_from_chief_ = cut;
  if (!cut) process.reachable_since_ = loop_.now();
  if (process.part() != nullptr) CutFromChief(*process.part(), cut);
  cut ? Silenced(process) : CarryHeld();
}

void World::CutFromAll(Process& process, bool cut) {
  Trace(&process, cut ? "is cut from all" : "is reached again");
  process.cut_from_all_ = cut;
  if (!cut) process.reachable_since_ = loop_.now();
  if (process.part() != nullptr) CutFromAll(*process.part(), cut);
  cut ? Silenced(process) : CarryHeld();
}

void World::Part(std::set<TaskId> far_side) {
  Trace(nullptr, far_side.empty() ? "the halves reach each other again"
                                  : "the cluster is parted");
  far_side_ = std::move(far_side);
  if (far_side_.empty()) return CarryHeld();
  for (const auto& process : processes_) {
    for (const auto& call : process->makes_) {
      if (!call->has_ended()) ArmDeadline(call);
    }
  }
}

// Calls that were to be answered at once may not be now.
void World::Silenced(Process& process) {
  process.silent_since_ = loop_.now();
  for (const auto* calls : {&process.makes_, &process.serves_}) {
    for (const auto& call : *calls) {
      if (!call->has_ended()) ArmDeadline(call);
    }
  }
  WatchKeepalive(process);
}

void World::WatchKeepalive(Process& process) {
  loop_.At(loop_.now() + kKeepalive,
           [this, &process, since = process.silent_since_] {
             const bool is_silent = process.stopped_ || process.cut_from_all_;
             if (is_silent && process.silent_since_ == since)
               BreakCalls(process);
           });
}

bool World::Disturb(const Fault& fault) {
  const absl::Time end = loop_.now() + fault.length;
  switch (fault.kind) {
    case Fault::Kind::kLoss:
      loss_ = fault.amount;
      loop_.At(end, [this] { loss_ = schedule_.shape.loss; });
      return true;
    case Fault::Kind::kReadErrors:
      disk_.SetReadErrors(true);
      loop_.At(end, [this] { disk_.SetReadErrors(false); });
      return true;
    case Fault::Kind::kWriteErrors:
      disk_.SetWriteErrors(true);
      loop_.At(end, [this] { disk_.SetWriteErrors(false); });
      return true;
    case Fault::Kind::kDamage:
      Trace(nullptr, "checkpoint ", disk_.DamageNewest(), " is damaged");
      return true;
    default:
      return false;
  }
}

void World::SetClockRate(Process& process, double rate) {
  Trace(&process, "has a clock of speed ", rate);
  process.clock_ = Now(process);
  process.clock_set_ = loop_.now();
  process.clock_rate_ = rate;
  if (process.part() != nullptr) SetClockRate(*process.part(), rate);
}

void World::Exit(Process& process, const absl::Status& status) {
  if (!process.alive_) return;
  Trace(&process, "ends: ", status.ToString());
  End(process);
  if (on_exit_) on_exit_(process, status);
}

void World::End(Process& process) {
  process.alive_ = false;
  auditor_.WorkerLeaves(process.incarnation_);
  process.deferred_.clear();
  // The kernel closes its connections.
  BreakCalls(process);
  process.makes_.clear();
  process.Ended();
}

void World::BreakCalls(Process& process) {
  for (const auto& call : std::exchange(process.serves_, {})) {
    if (call->has_ended()) continue;
    Process& client = call->client();
    const bool is_heard = !IsCut(client, process);
    Post(client, is_heard ? DrawLatency() : kKeepalive, [call] {
      call->Fail(absl::UnavailableError("the connection was reset"));
    });
  }
}

Process* World::Route(Process& client, const TaskId& to) {
  Process*& end = client.connections_[to];
  const bool is_broken =
      end == nullptr || !end->alive_ ||
      (end->stopped_ && loop_.now() - end->silent_since_ > kKeepalive);
  if (is_broken) end = Newest(to);
  return end;
}

bool World::IsCut(const Process& a, const Process& b) const {
  if (a.cut_from_all_ || b.cut_from_all_) return true;
  if (far_side_.contains(a.place_) != far_side_.contains(b.place_)) return true;
  const bool with_chief = a.place_.role == "chief" || b.place_.role == "chief";
  return with_chief && (a.cut_from_chief_ || b.cut_from_chief_);
}

World::Fate World::DrawFate() {
  if (loss_ == 0 || !random_.Chance(loss_)) return Fate::kAnswered;
  constexpr Fate kFates[] = {Fate::kRequestLost, Fate::kAnswerLost,
                             Fate::kLate};
  return kFates[random_.Below(3)];
}

absl::Duration World::DrawLatency() {
  return random_.Chance(20)
             ? random_.Between(absl::Milliseconds(2), absl::Milliseconds(300))
             : random_.Between(absl::Microseconds(100), absl::Milliseconds(2));
}

void World::Keep(const std::shared_ptr<PendingCall>& call) {
  RemoveEnded(call->client().makes_);
  call->client().makes_.push_back(call);
  if (call->server() == nullptr) return;
  RemoveEnded(call->server()->serves_);
  call->server()->serves_.push_back(call);
}

void World::Carry(Process& from, Process& to, absl::Duration delay,
                  EventLoop::Action action) {
  loop_.At(loop_.now() + delay,
           [this, &from, &to, action = std::move(action)]() mutable {
             if (IsCut(from, to)) {
               held_.push_back({from, to, std::move(action)});
             } else {
               Dispatch(to, std::move(action));
             }
           });
}

// TCP tries again after longer and longer waits.
void World::CarryHeld() {
  for (Held& held : std::exchange(held_, {})) {
    Carry(held.from, held.to,
          random_.Between(absl::Milliseconds(1), absl::Seconds(2)),
          std::move(held.action));
  }
}

void World::ArmDeadline(const std::shared_ptr<PendingCall>& call) {
  After(call->client(), call->deadline(), [this, call] { Expire(*call); });
}

void World::Expire(PendingCall& call) {
  if (call.has_ended()) return;
  // As ControlChannel does.
  Process*& end = call.client().connections_[call.to()];
  if (end == call.server()) end = nullptr;
  call.Fail(absl::DeadlineExceededError(
      absl::StrCat("no answer of ", call.to().ToString())));
}

void World::CancelCalls(Process& client, const TaskId& to) {
  const auto calls = client.makes_;
  for (const auto& call : calls) {
    if (call->to() == to) call->Fail(absl::CancelledError("cancelled"));
  }
}

void World::DropConnection(Process& client, const TaskId& to) {
  client.connections_.erase(to);
  const auto calls = client.makes_;
  for (const auto& call : calls) {
    if (call->to() != to) continue;
    call->Fail(absl::UnavailableError("the connection was dropped"));
  }
}

void World::DropOtherConnection(Process& client, const TaskId& to,
                                uint64_t incarnation) {
  const auto it = client.connections_.find(to);
  if (it == client.connections_.end() || it->second == nullptr) return;
  if (it->second->incarnation_ != incarnation) client.connections_.erase(it);
}

void World::AddTrace(const Process* process, std::string line) {
  constexpr absl::Time kStart = absl::FromUnixSeconds(1000000000);
  lines_.push_back(absl::StrCat(
      absl::ToInt64Milliseconds(loop_.now() - kStart) / 1000.0, " s ",
      process == nullptr ? "" : process->name(), " ", line));
}

}  // namespace parasol::simulation
