#include "storage/directory_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checked_message.h"
#include "storage/durable_file.h"
#include "storage/remote/remote_directory.h"
#include "storage/remote/remote_files.h"

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

// Returns the name of an owner's file in a store: its epoch, and what no other
// process has.
std::string RemoteName(const durable::DirectoryOwner& owner) {
  return absl::StrFormat("%012d-%d-%d-%08x", owner.chief_epoch(),
                         owner.process_id(), owner.taken_unix_micros(),
                         Crc32cOf(owner.host()));
}

// Returns the epoch in such a name, or -1.
int64_t EpochOfName(absl::string_view name) {
  int64_t epoch = -1;
  const size_t end = name.find('-');
  if (end == name.npos || !absl::SimpleAtoi(name.substr(0, end), &epoch)) {
    return -1;
  }
  return epoch;
}

// Returns the names of the owners' files in a store, ascending.
absl::StatusOr<std::vector<std::string>> RemoteNames(
    const std::string& directory) {
  ASSIGN_OR_RETURN(const RemoteListing listing,
                   ListRemote(OwnerPath(directory)));
  std::vector<std::string> names;
  const auto folder = listing.find("");
  if (folder == listing.end()) return names;
  for (const auto& [name, bytes] : folder->second) {
    if (EpochOfName(name) >= 0) names.push_back(name);
  }
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::pair(EpochOfName(a), a) < std::pair(EpochOfName(b), b);
  });
  return names;
}

// Returns the file whose owner counts; "" if there is none.
absl::StatusOr<std::string> NewestName(const std::string& directory,
                                       const durable::DirectoryOwner* self) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   RemoteNames(directory));
  if (names.empty()) return "";
  const int64_t newest = EpochOfName(names.back());
  std::string found;
  for (const std::string& name : names) {
    if (EpochOfName(name) != newest) continue;
    if (found.empty()) found = name;
    if (self != nullptr && name == RemoteName(*self)) found = name;
  }
  return found;
}

absl::StatusOr<OwnerSight> LookInStore(const std::string& directory,
                                       const durable::DirectoryOwner* self) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
  // One that is listed may be removed by the next owner before it is read.
  constexpr int kMostLooks = 5;
  for (int look = 1;; ++look) {
    ASSIGN_OR_RETURN(const std::string name, NewestName(directory, self));
    if (name.empty()) return OwnerSight();
    const std::string path = JoinedPath(OwnerPath(directory), name);
    const absl::StatusOr<RemoteFiles::About> about = files->Look(path);
    const absl::StatusOr<std::string> bytes =
        about.ok() ? files->Read(path, kMaxCheckedBytes)
                   : absl::StatusOr<std::string>(about.status());
    if (absl::IsNotFound(bytes.status()) && look < kMostLooks) continue;
    if (absl::IsNotFound(bytes.status())) return OwnerSight();
    RETURN_IF_ERROR(bytes.status());
    OwnerSight sight;
    sight.owner = Decode(*bytes);
    if (sight.owner && sight.owner->chief_epoch() != EpochOfName(name)) {
      sight.owner.reset();
    }
    sight.stamp = absl::StrCat(name, "/", about->version, "/",
                               sight.owner && sight.owner->released());
    return sight;
  }
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
  return JoinedPath(directory, "CHIEF");
}

absl::StatusOr<bool> IsOnlyOwner(const std::string& directory,
                                 const durable::DirectoryOwner& owner) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   RemoteNames(directory));
  const std::string own = RemoteName(owner);
  return std::none_of(names.begin(), names.end(), [&](const auto& name) {
    return name != own && EpochOfName(name) >= owner.chief_epoch();
  });
}

absl::Status RemoveOwner(const std::string& directory,
                         const durable::DirectoryOwner& owner) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
  return files->Remove(JoinedPath(OwnerPath(directory), RemoteName(owner)));
}

absl::Status RemoveOlderOwners(const std::string& directory,
                               const durable::DirectoryOwner& owner) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   RemoteNames(directory));
  for (const std::string& name : names) {
    if (EpochOfName(name) >= owner.chief_epoch()) continue;
    RETURN_IF_ERROR(files->Remove(JoinedPath(OwnerPath(directory), name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<OwnerSight> LookAtOwner(const std::string& directory,
                                       const durable::DirectoryOwner* self) {
  if (IsUri(directory)) return LookInStore(directory, self);
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
      IsUri(directory) ? JoinedPath(OwnerPath(directory), RemoteName(owner))
                       : OwnerPath(directory),
      EncodeChecked(kOwnerMagic, owner.SerializeAsString()));
}

absl::Status TouchOwner(const std::string& directory,
                        const durable::DirectoryOwner& owner) {
  // Nobody else writes it.
  if (IsUri(directory)) return WriteOwner(directory, owner);
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
