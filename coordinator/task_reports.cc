#include "coordinator/task_reports.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr size_t kMaxWaits = 16;
constexpr size_t kMaxShownBytes = 300;
// Nobody waits for longer.
constexpr int64_t kMostSeconds = int64_t{1} << 32;

std::string Shown(absl::string_view text) {
  return OneLine(text.substr(0, kMaxShownBytes));
}

double Sane(double number) {
  return std::isfinite(number) && number > 0 ? number : 0;
}

double SaneShare(double share) { return std::min(1., Sane(share)); }

// Takes a time back that makes no sense.
template <typename Message>
void Check(Message& message, bool (Message::*has)() const,
           const google::protobuf::Duration& (Message::*get)() const,
           void (Message::*clear)()) {
  if (!(message.*has)()) return;
  const google::protobuf::Duration& time = (message.*get)();
  if (time.seconds() < 0 || time.seconds() > kMostSeconds || time.nanos() < 0 ||
      time.nanos() >= 1'000'000'000) {
    (message.*clear)();
  }
}

wire::PsWait Checked(wire::PsWait wait) {
  using Wait = wire::PsWait;
  wait.set_share(SaneShare(wait.share()));
  wait.set_trouble(Shown(wait.trouble()));
  Check(wait, &Wait::has_since, &Wait::since, &Wait::clear_since);
  return wait;
}

wire::PsLoad Checked(wire::PsLoad load) {
  using Load = wire::PsLoad;
  load.set_operations_per_second(Sane(load.operations_per_second()));
  load.set_busy_threads(Sane(load.busy_threads()));
  load.set_push_bytes_per_second(Sane(load.push_bytes_per_second()));
  load.set_pull_bytes_per_second(Sane(load.pull_bytes_per_second()));
  load.set_late_share(SaneShare(load.late_share()));
  Check(load, &Load::has_stuck, &Load::stuck, &Load::clear_stuck);
  Check(load, &Load::has_writing, &Load::writing, &Load::clear_writing);
  Check(load, &Load::has_loading, &Load::loading, &Load::clear_loading);
  if (load.has_hot_row()) {
    load.mutable_hot_row()->set_table(Shown(load.hot_row().table()));
    load.mutable_hot_row()->set_share(SaneShare(load.hot_row().share()));
  }
  return load;
}

}  // namespace

TaskReports::Said& TaskReports::SaidBy(const wire::Task& task) {
  Place& place = places_[TaskId::Of(task)];
  if (place.newest.incarnation != task.incarnation()) {
    std::swap(place.newest, place.former);
  }
  if (place.newest.incarnation != task.incarnation()) {
    place.newest = {.incarnation = task.incarnation()};
  }
  return place.newest;
}

void TaskReports::Begin(const wire::RegisterRequest& request) {
  Said& said = SaidBy(request.task());
  said.version = Shown(request.version());
  said.process = Shown(request.process());
}

void TaskReports::Keep(const wire::HeartbeatRequest& request) {
  Said& said = SaidBy(request.task());
  said.waits.clear();
  for (const wire::PsWait& wait : request.ps_wait()) {
    if (said.waits.size() == kMaxWaits) break;
    said.waits.push_back(Checked(wait));
  }
  said.has_load = request.has_ps_load();
  said.load = Checked(request.ps_load());
}

void TaskReports::Describe(const TaskId& id, uint64_t incarnation,
                           const Names& names, wire::TaskStatus& status) const {
  const auto it = places_.find(id);
  if (it == places_.end()) return;
  const Place& place = it->second;
  const Said& said =
      place.newest.incarnation == incarnation ? place.newest : place.former;
  if (said.incarnation != incarnation) return;
  status.set_version(said.version);
  status.set_process(said.process);
  if (id.role == "worker") {
    for (const wire::PsWait& wait : said.waits) {
      const auto shard = static_cast<size_t>(wait.shard());
      if (wait.shard() < 0 || shard >= names.shards.size()) continue;
      *status.add_ps_wait() = wait;
      status.mutable_ps_wait()->rbegin()->set_ps(names.shards[shard]);
    }
  }
  if (id.role != "ps" || !said.has_load) return;
  *status.mutable_ps_load() = said.load;
  const auto worker = names.workers.find(said.load.late_incarnation());
  status.mutable_ps_load()->clear_late_incarnation();
  status.mutable_ps_load()->clear_late_worker();
  if (worker == names.workers.end()) {
    status.mutable_ps_load()->clear_late_share();
  } else {
    status.mutable_ps_load()->set_late_worker(worker->second);
  }
}

}  // namespace parasol
