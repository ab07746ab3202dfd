#include "worker/shown/lone_status.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "cluster/progress/task_notes.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/watch/findings.h"

namespace parasol {
namespace {

// The process does not change its own.
constexpr uint64_t kOwnIncarnation = 1;

// Returns true for what only another process can end.
bool IsWait(wire::Finding::Kind kind) {
  return kind == wire::Finding::LINK || kind == wire::Finding::WORKER;
}

// Puts a finding before the others; behind those that say which process is
// stopped or gone, if it is a wait for other processes.
void PutFirst(wire::Finding finding, wire::JobStatus& status) {
  const bool is_wait = IsWait(finding.kind());
  auto& findings = *status.mutable_finding();
  *findings.Add() = std::move(finding);
  const auto last = findings.end() - 1;
  const auto place =
      std::find_if(findings.begin(), last, [&](const wire::Finding& other) {
        return !is_wait || (other.kind() != wire::Finding::STOPPED &&
                            other.kind() != wire::Finding::MISSING);
      });
  std::rotate(place, last, findings.end());
}

wire::Finding FindingOf(const LoneStatus::Doing& doing, absl::Time now) {
  wire::Finding finding;
  finding.set_kind(doing.kind);
  finding.set_task("worker/0");
  finding.set_text(
      absl::StrCat("worker/0 has been ", doing.what, " for ",
                   absl::FormatDuration(absl::Floor(now - doing.since,
                                                    absl::Milliseconds(100)))));
  return finding;
}

bool IsOver(const wire::JobStatus& status) {
  return status.phase() == wire::COMPLETE || status.phase() == wire::FAILED;
}

}  // namespace

std::string NameOfWorker(int index) { return absl::StrCat("worker/", index); }

LoneStatus::LoneStatus(Clock& clock, std::string untold)
    : clock_(clock),
      untold_(std::move(untold)),
      page_(clock),
      inspection_(clock) {}

void LoneStatus::Ask(Training training) {
  absl::MutexLock lock(&mu_);
  if (training_.status != nullptr) page_.Show(NowShown());
  training_ = std::move(training);
  paces_.Forget(/*worker=*/0);  // another training counts from 0 on
}

std::optional<LoneStatus::Doing> LoneStatus::NowDone() const {
  if (activity_) return activity_;
  return training_.part == nullptr ? std::nullopt : training_.part();
}

void LoneStatus::Report(const wire::WorkerTotals& totals) {
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  paces_.Report(/*worker=*/0, kOwnIncarnation, totals, now);
  paces_.Judge(now);
}

void LoneStatus::SetProcesses(int processes) {
  absl::MutexLock lock(&mu_);
  peers_.resize(std::max(0, processes - 1));
}

absl::StatusOr<wire::HeartbeatResponse> LoneStatus::Heartbeat(
    const wire::HeartbeatRequest& request) {
  const wire::Task& task = request.task();
  const absl::Time now = clock_.Now();
  {
    absl::MutexLock lock(&mu_);
    if (task.role() != "worker" || task.index() < 1 ||
        task.index() > std::ssize(peers_)) {
      return absl::InvalidArgumentError(
          absl::StrCat(ShownText(task.role()), "/", task.index(),
                       ": the program has the workers 0 to ", peers_.size()));
    }
    Peer& peer = peers_[task.index() - 1];
    if (peer.incarnation != task.incarnation()) paces_.Forget(task.index());
    peer.incarnation = task.incarnation();
    peer.heard = now;
    if (request.has_totals()) {
      paces_.Report(task.index(), task.incarnation(), request.totals(), now);
    }
    paces_.Judge(now);
  }
  wire::HeartbeatResponse answer;
  inspection_.Exchange(NameOfWorker(task.index()), request, answer);
  answer.set_unix_micros(absl::ToUnixMicros(clock_.Now()));
  return answer;
}

absl::StatusOr<wire::InspectResponse> LoneStatus::Inspect(
    const wire::InspectRequest& request) {
  std::vector<std::string> others;
  {
    const absl::Time now = clock_.Now();
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (now - peers_[i].heard < kLease) {
        others.push_back(NameOfWorker(static_cast<int>(i) + 1));
      }
    }
  }
  return inspection_.Inspect(request, std::move(others));
}

bool LoneStatus::HearsPeers() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return peer.heard != absl::InfinitePast();
  });
}

void LoneStatus::AddPeers(absl::Time now, wire::JobStatus& status) const {
  // Perhaps nobody else has been told to tell.
  if (!HearsPeers()) return;
  for (wire::TaskStatus& task : *status.mutable_task()) {
    paces_.Describe(task.task().index(), absl::ZeroDuration(), task);
  }
  for (size_t i = 0; i < peers_.size(); ++i) {
    const int index = static_cast<int>(i) + 1;
    const absl::Duration silence = now - peers_[i].heard;
    wire::TaskStatus& task = *status.add_task();
    task.mutable_task()->set_role("worker");
    task.mutable_task()->set_index(index);
    task.set_alive(silence < kLease);
    if (!task.alive()) continue;
    *task.mutable_silence() = ToProto(silence);
    paces_.Describe(index, silence, task);
  }
}

void LoneStatus::AddLost(absl::Time now, wire::JobStatus& status) const {
  absl::Duration longest;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const absl::Duration silence = now - peers_[i].heard;
    if (silence < kLease || silence == absl::InfiniteDuration()) continue;
    status.add_missing_task(NameOfWorker(static_cast<int>(i) + 1));
    longest = std::max(longest, silence);
  }
  // Of a trouble it is the time for which there has been one.
  if (!status.missing_task().empty() && status.trouble().empty()) {
    *status.mutable_waited() = ToProto(longest);
  }
}

wire::JobStatus LoneStatus::Untold(absl::Time now) const {
  wire::JobStatus status;
  status.set_phase(wire::LOADING);
  status.set_trouble(untold_);
  if (!peers_.empty() && !HearsPeers()) {
    status.set_trouble(absl::StrCat(
        untold_,
        "; no other one is heard: are they there, and with --status_address?"));
  }
  AddPeers(now, status);
  for (const wire::TaskStatus& peer : status.task()) {
    if (!peer.alive()) status.add_missing_task(NameOfTask(peer));
  }
  AddFindings(status);
  return status;
}

wire::JobStatus LoneStatus::NowShown() const {
  if (training_.status == nullptr) return Untold(clock_.Now());
  wire::JobStatus status = training_.status();
  const std::optional<Doing> doing = NowDone();
  const absl::Time now = clock_.Now();
  const bool is_long = doing && !IsOver(status) && now - doing->since >= kLong;
  AddPeers(now, status);
  // Steps may go on though heartbeats do not come.
  if (is_long && IsWait(doing->kind)) AddLost(now, status);
  if (HearsPeers()) AddFindings(status);
  if (is_long) PutFirst(FindingOf(*doing, now), status);
  return status;
}

wire::JobStatus LoneStatus::Status() const {
  absl::MutexLock lock(&mu_);
  return NowShown();
}

void LoneStatus::ShowOnPage() {
  absl::MutexLock lock(&mu_);
  if (training_.status != nullptr) page_.Show(NowShown());
}

PageServer::Page LoneStatus::PageAt(absl::string_view path) {
  if (path == "/status.json") ShowOnPage();
  return page_.At(path);
}

LoneStatus::Activity::Activity(LoneStatus* status, const char* name,
                               const char* track, wire::Finding::Kind kind,
                               const char* what)
    : status_(status), name_(name), track_(track) {
  if (status_ == nullptr) return;
  begin_ = status_->clock_.Now();
  absl::MutexLock lock(&status_->mu_);
  status_->activity_ = {.kind = kind, .what = what, .since = begin_};
}

LoneStatus::Activity::~Activity() {
  if (status_ == nullptr) return;
  {
    absl::MutexLock lock(&status_->mu_);
    status_->activity_.reset();
  }
  TraceRecorder& trace = status_->inspection_.recorder();
  if (!trace.is_on()) return;
  trace.Add({.name = name_,
             .track = track_,
             .begin = begin_,
             .end = status_->clock_.Now()});
}

}  // namespace parasol
