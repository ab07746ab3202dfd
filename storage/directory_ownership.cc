#include "storage/directory_ownership.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/directory_owner.h"
#include "storage/owner_watch.h"

namespace parasol {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(100);
constexpr absl::Duration kPollOfStore = absl::Seconds(1);
constexpr int kMostPauseMs = 3000;
constexpr int kMostAttempts = 20;
constexpr absl::Duration kLogInterval = absl::Seconds(10);

std::string LockPath(const std::string& directory) {
  return absl::StrCat(directory, "/CHIEF.lock");
}

struct LockAttempt {
  OwnerLock state = OwnerLock::kUnsupported;
  std::optional<FileDescriptor> file;  // if it is held
};

absl::StatusOr<LockAttempt> TryLock(const std::string& directory) {
  if (IsUri(directory)) return LockAttempt();
  const std::string path = LockPath(directory);
  ASSIGN_OR_RETURN(
      FileDescriptor file,
      FileDescriptor::Open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOCTTY));
  LockAttempt attempt;
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) attempt.state = OwnerLock::kBusy;
    return attempt;
  }
  // One who takes the directory from an owner that stands still makes a new
  // file: see RemoveLock().
  struct stat held, named;
  if (fstat(file.get(), &held) != 0 || stat(path.c_str(), &named) != 0 ||
      held.st_ino != named.st_ino || held.st_dev != named.st_dev) {
    attempt.state = OwnerLock::kBusy;
    return attempt;
  }
  attempt.state = OwnerLock::kHeld;
  attempt.file = std::move(file);
  return attempt;
}

// The owner that stands still keeps its lock, on a file without a name.
absl::Status RemoveLock(const std::string& directory) {
  const std::string path = LockPath(directory);
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return FileError(errno, "remove", path);
}

bool IsSame(const durable::DirectoryOwner& a,
            const durable::DirectoryOwner& b) {
  return a.chief_epoch() == b.chief_epoch() && a.host() == b.host() &&
         a.process_id() == b.process_id() &&
         a.taken_unix_micros() == b.taken_unix_micros();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectoryOwnership>> DirectoryOwnership::Take(
    Options options, Clock& clock) {
  std::unique_ptr<DirectoryOwnership> ownership(
      new DirectoryOwnership(std::move(options), clock));
  RETURN_IF_ERROR(ownership->TakeNow())
      << "checkpoint directory " << ownership->options_.directory;
  ownership->is_taken_ = true;
  ownership->thread_ =
      std::thread([ownership = ownership.get()] { ownership->Run(); });
  return ownership;
}

DirectoryOwnership::DirectoryOwnership(Options options, Clock& clock)
    : options_(std::move(options)),
      lease_(options_.lease.value_or(IsUri(options_.directory) ? kLeaseInStore
                                                               : kLease)),
      clock_(clock) {}

DirectoryOwnership::~DirectoryOwnership() {
  StopRenewal();
  if (is_taken_) Release();
}

void DirectoryOwnership::StopRenewal() {
  {
    absl::MutexLock lock(&mu_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status DirectoryOwnership::TakeNow() {
  const std::string& directory = options_.directory;
  RETURN_IF_ERROR(MakeDirectories(directory));
  absl::MutexLock disk(&disk_mu_);
  if (!IsUri(directory)) {
    ASSIGN_OR_RETURN(in_use_, DirectoryLock::Share(directory));
  }
  ASSIGN_OR_RETURN(OwnerSight sight, AwaitTurn());
  record_ = NextOwner(sight, options_.job_name, clock_.Now());
  for (int attempt = 1; IsUri(directory); ++attempt) {
    ASSIGN_OR_RETURN(const bool is_taken, TakeInStore());
    if (is_taken) break;
    if (attempt == kMostAttempts) {
      return absl::UnavailableError(
          absl::StrCat("others want ", OwnerPath(directory),
                       ", too, and so nobody got it in ", kMostAttempts,
                       " attempts: end them, or use another directory"));
    }
    // Each other one waits as well, and for another time.
    clock_.Pause(absl::Milliseconds(
        absl::Uniform<int>(absl::BitGen(), 0, kMostPauseMs)));
    ASSIGN_OR_RETURN(sight, AwaitTurn());
    record_ = NextOwner(sight, options_.job_name, clock_.Now());
  }
  chief_epoch_ = record_.chief_epoch();
  ps_at_start_.assign(record_.ps().begin(), record_.ps().end());
  run_at_start_ = record_.run_id();
  if (!IsUri(directory)) {
    RETURN_IF_ERROR(WriteOwner(directory, record_));
  }
  if (sight.owner && !sight.owner->released()) {
    LOG(INFO) << "taking checkpoint directory " << directory << " from "
              << Describe(sight.owner) << ", which has ended";
  }
  // Another one may have taken it in the same moment.
  return CheckNow();
}

absl::StatusOr<bool> DirectoryOwnership::TakeInStore() {
  ASSIGN_OR_RETURN(const bool is_taken,
                   ClaimStore(options_.directory, record_));
  if (!is_taken) return false;
  // What stays is removed when the lease is renewed.
  const absl::Status removed = RemoveLeftBehind(options_.directory, record_);
  if (!removed.ok()) LOG(WARNING) << removed.message();
  return true;
}

absl::StatusOr<OwnerSight> DirectoryOwnership::AwaitTurn() {
  const std::string& directory = options_.directory;
  OwnerWatch watch(ThisMachine(), lease_);
  absl::Time next_log = absl::InfinitePast();
  while (true) {
    ASSIGN_OR_RETURN(LockAttempt attempt, TryLock(directory));
    ASSIGN_OR_RETURN(OwnerSight sight, LookAtOwner(directory));
    if (sight.owner) {
      RETURN_IF_ERROR(CheckEpochs(*sight.owner, OwnerPath(directory)));
    }
    sight.lock = attempt.state;
    const absl::Time now = clock_.Now();
    const OwnerWatch::Verdict verdict = watch.Look(sight, now);
    if (verdict == OwnerWatch::Verdict::kRefuse) {
      return absl::InvalidArgumentError(
          absl::StrCat("it belongs to ", Describe(sight.owner),
                       ", which is alive: end that, or use another directory"));
    }
    if (verdict == OwnerWatch::Verdict::kTake) {
      lock_ = std::move(attempt.file);
      if (attempt.state != OwnerLock::kBusy) return sight;
      RETURN_IF_ERROR(RemoveLock(directory));
      continue;
    }
    const std::string wait = absl::StrCat(
        "checkpoint directory ", directory, " belongs to ",
        Describe(sight.owner), ": waiting up to ",
        absl::FormatDuration(absl::Ceil(watch.end() - now, absl::Seconds(1))),
        " for a sign of life before it is taken");
    if (options_.cancelled()) {
      return absl::CancelledError(absl::StrCat("stopped: ", wait));
    }
    options_.on_wait(wait);
    if (now >= next_log) LOG(WARNING) << wait;
    if (now >= next_log) next_log = now + kLogInterval;
    clock_.Pause(IsUri(directory) ? kPollOfStore : kPoll);
  }
}

absl::Status DirectoryOwnership::Check() {
  {
    absl::MutexLock lock(&mu_);
    if (!lost_.ok()) return lost_;
  }
  absl::MutexLock disk(&disk_mu_);
  return CheckNow();
}

absl::Status DirectoryOwnership::CheckWithin(absl::Duration limit) {
  absl::MutexLock lock(&mu_);
  // One that has begun may have read before.
  const int64_t look = begun_look_ + 1;
  wanted_look_ = look;
  const auto is_known = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ended_look_ >= look || !lost_.ok() || ending_;
  };
  clock_.AwaitWithTimeout(mu_, absl::Condition(&is_known), limit);
  return lost_;
}

absl::Status DirectoryOwnership::CheckNow() {
  const absl::StatusOr<OwnerSight> seen =
      LookAtOwner(options_.directory, &record_);
  if (absl::IsDataLoss(seen.status()) && !IsDirectory(options_.directory)) {
    return absl::InvalidArgumentError(
        absl::StrCat("checkpoint directory ", options_.directory,
                     ": is not a directory any more"));
  }
  RETURN_IF_ERROR(seen.status());
  const OwnerSight& sight = *seen;
  has_left_behind_ = sight.has_left_behind;
  if (sight.owner && IsSame(*sight.owner, record_)) return absl::OkStatus();
  const bool has_owner =
      sight.owner &&
      CheckEpochs(*sight.owner, OwnerPath(options_.directory)).ok();
  // Files of older owners may be left in a store.
  const bool is_older = has_owner && IsUri(options_.directory) &&
                        sight.owner->chief_epoch() < record_.chief_epoch();
  if (has_owner && !is_older) return Lost(*sight.owner);
  // Removed, perhaps with the directory: who makes that again comes back here.
  if (!IsDirectory(options_.directory)) return absl::OkStatus();
  LOG(WARNING)
      << "the file CHIEF in " << options_.directory
      << " was removed or damaged while it was in use: writing it again";
  if (IsUri(options_.directory)) {
    return WriteOwner(options_.directory, record_);
  }
  ASSIGN_OR_RETURN(in_use_, DirectoryLock::Share(options_.directory));
  lock_.reset();
  ASSIGN_OR_RETURN(LockAttempt attempt, TryLock(options_.directory));
  if (attempt.state == OwnerLock::kBusy) {
    return absl::UnavailableError(absl::StrCat(
        options_.directory, ": another process is taking this directory"));
  }
  lock_ = std::move(attempt.file);
  return WriteOwner(options_.directory, record_);
}

absl::Status DirectoryOwnership::Lost(const durable::DirectoryOwner& now) {
  absl::MutexLock lock(&mu_);
  if (lost_.ok()) {
    lost_ = absl::FailedPreconditionError(absl::StrCat(
        "checkpoint directory ", options_.directory, " belongs to ",
        Describe(now), " now, not to this process of epoch ", chief_epoch_,
        ", which stood still or was cut off; it ends and touches nothing "
        "more"));
  }
  return lost_;
}

absl::Status DirectoryOwnership::Record(
    const std::string& run_id, const std::vector<durable::PlaceEpoch>& ps) {
  RETURN_IF_ERROR(Check());
  absl::MutexLock disk(&disk_mu_);
  std::vector<durable::PlaceEpoch> places = ps;
  if (record_.run_id() == run_id) {
    for (durable::PlaceEpoch& place : places) {
      const durable::PlaceEpoch& before = PlaceOf(place.index());
      place.set_standby(before.standby());
      place.set_standby_index(before.standby_index());
    }
  }
  record_.set_run_id(run_id);
  record_.mutable_ps()->Assign(places.begin(), places.end());
  return WriteRecord();
}

absl::Status DirectoryOwnership::RecordStandbys(
    const std::string& run_id, const std::vector<durable::PlaceEpoch>& ps) {
  RETURN_IF_ERROR(Check());
  absl::MutexLock disk(&disk_mu_);
  record_.set_run_id(run_id);
  for (const durable::PlaceEpoch& place : ps) {
    durable::PlaceEpoch& recorded = PlaceOf(place.index());
    recorded.set_standby(place.standby());
    recorded.set_standby_index(place.standby_index());
  }
  return WriteRecord();
}

durable::PlaceEpoch& DirectoryOwnership::PlaceOf(int index) {
  for (durable::PlaceEpoch& place : *record_.mutable_ps()) {
    if (place.index() == index) return place;
  }
  durable::PlaceEpoch& place = *record_.add_ps();
  place.set_index(index);
  return place;
}

absl::Status DirectoryOwnership::WriteRecord() {
  // It may have been removed.
  RETURN_IF_ERROR(MakeDirectories(options_.directory));
  RETURN_IF_ERROR(WriteOwner(options_.directory, record_));
  // In a store others do not wait for the write: one that claims the directory
  // is seen now, or reads this record after its claim.
  return IsUri(options_.directory) ? CheckNow() : absl::OkStatus();
}

void DirectoryOwnership::OnLost(std::function<void(absl::Status)> callback) {
  absl::MutexLock lock(&mu_);
  on_lost_ = std::move(callback);
}

void DirectoryOwnership::Run() {
  auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ending_ || (!lost_.ok() && on_lost_ != nullptr) ||
           (lost_.ok() && wanted_look_ > begun_look_);
  };
  while (true) {
    std::function<void(absl::Status)> on_lost;
    absl::Status lost;
    {
      absl::MutexLock lock(&mu_);
      clock_.AwaitWithTimeout(mu_, absl::Condition(&has_news), lease_ / 5);
      if (ending_) return;
      lost = lost_;
      if (!lost.ok()) on_lost = std::exchange(on_lost_, nullptr);
      ++begun_look_;
    }
    if (on_lost) on_lost(lost);
    if (lost.ok()) Renew();
    absl::MutexLock lock(&mu_);
    ended_look_ = begun_look_;
  }
}

void DirectoryOwnership::Renew() {
  absl::Status renewed = Check();
  if (absl::IsFailedPrecondition(renewed)) return;
  if (renewed.ok()) {
    absl::MutexLock disk(&disk_mu_);
    renewed = TouchOwner(options_.directory, record_);
    if (renewed.ok() && has_left_behind_) {
      renewed = RemoveLeftBehind(options_.directory, record_);
    }
  }
  if (renewed.ok() || absl::IsNotFound(renewed)) return;
  LOG_EVERY(WARNING, kLogInterval)
      << "can't renew the lease of checkpoint directory " << options_.directory
      << ": " << renewed.message();
}

void DirectoryOwnership::Release() {
  const absl::Status status = Check();
  absl::MutexLock disk(&disk_mu_);
  if (status.ok() && IsDirectory(options_.directory)) {
    record_.set_released(true);
    const absl::Status written = WriteOwner(options_.directory, record_);
    if (!written.ok()) LOG(WARNING) << written.message();
  }
  lock_.reset();
}

}  // namespace parasol
