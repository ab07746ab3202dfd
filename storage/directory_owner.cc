#include "storage/directory_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/checked_message.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr absl::string_view kOwnerMagic = "PARASOLC";
constexpr int64_t kYear2026 = 1767225600;  // Unix time

std::optional<durable::DirectoryOwner> Decode(absl::string_view bytes) {
  const absl::StatusOr<absl::string_view> payload =
      DecodeChecked(kOwnerMagic, bytes);
  durable::DirectoryOwner owner;
  if (!payload.ok() ||
      !owner.ParseFromArray(payload->data(), payload->size())) {
    return std::nullopt;
  }
  return owner;
}

// A place's epoch has its chief's epoch in its upper half.
constexpr int kPlaceShift = 32;

absl::Status NoSuchEpoch(const std::string& path, absl::string_view what,
                         int64_t epoch) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has the ", what, " ", epoch,
      ", which no process has been given: put the file back as it was, or "
      "remove it while no process uses the directory"));
}

}  // namespace

absl::Status CheckEpochs(const durable::DirectoryOwner& owner,
                         const std::string& path) {
  // The next one is larger.
  if (owner.chief_epoch() < 0 || owner.chief_epoch() >= kMaxChiefEpoch) {
    return NoSuchEpoch(path, "chief_epoch", owner.chief_epoch());
  }
  for (const durable::PlaceEpoch& place : owner.ps()) {
    if (place.place_epoch() < 0 ||
        place.place_epoch() >> kPlaceShift > owner.chief_epoch()) {
      return NoSuchEpoch(path,
                         absl::StrCat("place_epoch of ps/", place.index()),
                         place.place_epoch());
    }
  }
  return absl::OkStatus();
}

std::string OwnerPath(const std::string& directory) {
  return absl::StrCat(directory, "/CHIEF");
}

absl::StatusOr<OwnerSight> LookAtOwner(const std::string& directory) {
  const std::string path = OwnerPath(directory);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxCheckedBytes);
  OwnerSight sight;
  if (absl::IsNotFound(bytes.status())) return sight;
  if (!bytes.ok() && !absl::IsDataLoss(bytes.status())) return bytes.status();
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return sight;
    return ReadError(errno, "stat", path);
  }
  if (bytes.ok()) sight.owner = Decode(*bytes);
  sight.stamp = absl::StrCat(info.st_ino, "/", info.st_mtim.tv_sec, "/",
                             info.st_mtim.tv_nsec, "/",
                             sight.owner ? sight.owner->chief_epoch() : 0, "/",
                             sight.owner ? sight.owner->taken_unix_micros() : 0,
                             "/", sight.owner && sight.owner->released());
  return sight;
}

absl::Status WriteOwner(const std::string& directory,
                        const durable::DirectoryOwner& owner) {
  return ReplaceFileDurably(
      OwnerPath(directory),
      EncodeChecked(kOwnerMagic, owner.SerializeAsString()));
}

absl::Status TouchOwner(const std::string& directory,
                        const durable::DirectoryOwner& owner) {
  const std::string path = OwnerPath(directory);
  // The file that is read is the one that is touched, whoever takes the name.
  ASSIGN_OR_RETURN(const FileDescriptor file,
                   FileDescriptor::OpenForReading(path));
  ASSIGN_OR_RETURN(const OwnerSight sight, LookAtOwner(directory));
  if (!sight.owner || sight.owner->chief_epoch() != owner.chief_epoch() ||
      sight.owner->taken_unix_micros() != owner.taken_unix_micros()) {
    return absl::NotFoundError(absl::StrCat(path, ": names another owner"));
  }
  if (futimens(file.get(), nullptr) != 0) {
    return FileError(errno, "touch", path);
  }
  return absl::OkStatus();
}

durable::DirectoryOwner NextOwner(const OwnerSight& sight,
                                  const std::string& job_name, absl::Time now) {
  durable::DirectoryOwner owner;
  owner.set_chief_epoch(
      sight.owner ? sight.owner->chief_epoch() + 1
                  : std::max<int64_t>(1, absl::ToUnixSeconds(now) - kYear2026));
  owner.set_host(ThisMachine());
  owner.set_process_id(getpid());
  owner.set_job_name(job_name);
  owner.set_taken_unix_micros(absl::ToUnixMicros(now));
  if (sight.owner) {
    owner.set_run_id(sight.owner->run_id());
    *owner.mutable_ps() = sight.owner->ps();
  }
  return owner;
}

std::string Describe(const std::optional<durable::DirectoryOwner>& owner) {
  if (!owner || owner->chief_epoch() == 0) {
    return "an owner that is not known: the file CHIEF is missing or damaged";
  }
  return absl::StrCat(
      "process ", owner->process_id(), " on ", HostOf(*owner),
      owner->job_name().empty() ? ""
                                : absl::StrCat(", job ", owner->job_name()),
      ", since ",
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ",
                       absl::FromUnixMicros(owner->taken_unix_micros()),
                       absl::UTCTimeZone()));
}

}  // namespace parasol
