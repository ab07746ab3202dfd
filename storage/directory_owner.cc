#include "storage/directory_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <compare>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checked_message.h"
#include "storage/checkpoint_name.h"
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

// A claim is the file of a process that wants the directory, and does not know
// yet whether another one wants it, too.
constexpr absl::string_view kClaimSuffix = "-claim";

std::string ClaimName(const durable::DirectoryOwner& owner) {
  return absl::StrCat(RemoteName(owner), kClaimSuffix);
}

// A file in a store's folder CHIEF.
struct OwnerFile {
  int64_t epoch = 0;
  bool is_claim = false;
  std::string name;

  auto operator<=>(const OwnerFile&) const = default;
};

// Returns what a name says; nullopt of one that none of ours has.
std::optional<OwnerFile> OwnerFileOf(const std::string& name) {
  OwnerFile file;
  const size_t end = name.find('-');
  if (!IsPlainName(name) || end == name.npos ||
      !absl::SimpleAtoi(name.substr(0, end), &file.epoch) || file.epoch < 0) {
    return std::nullopt;
  }
  file.is_claim = absl::EndsWith(name, kClaimSuffix);
  file.name = name;
  return file;
}

// Returns the owners' files in a store, by their epochs, claims last.
absl::StatusOr<std::vector<OwnerFile>> OwnerFilesIn(
    const std::string& directory) {
  ASSIGN_OR_RETURN(const RemoteListing listing,
                   ListRemote(OwnerPath(directory)));
  std::vector<OwnerFile> found;
  const auto folder = listing.find("");
  if (folder == listing.end()) return found;
  for (const auto& [name, bytes] : folder->second) {
    if (auto file = OwnerFileOf(name)) found.push_back(*std::move(file));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns true if the file is one of others whose epoch is not larger than the
// epoch of `owner`: of an older owner, or of one that withdrew or ended before
// it knew that it was not alone.
bool IsLeftBehind(const OwnerFile& file, const durable::DirectoryOwner& owner) {
  return file.epoch <= owner.chief_epoch() && file.name != RemoteName(owner);
}

// Leaves the files of the largest epoch, which say who owns the directory. What
// `self` has left behind says nothing to it.
void LeaveNewest(const durable::DirectoryOwner* self,
                 std::vector<OwnerFile>& files) {
  if (self != nullptr) {
    std::erase_if(files, [&](const OwnerFile& file) {
      return file.epoch >= kMaxChiefEpoch ||
             (file.is_claim && IsLeftBehind(file, *self));
    });
  }
  if (files.empty()) return;
  const int64_t newest = files.back().epoch;
  std::erase_if(files,
                [&](const OwnerFile& file) { return file.epoch < newest; });
  if (self == nullptr) return;
  const auto own = std::find_if(
      files.begin(), files.end(),
      [&](const OwnerFile& file) { return file.name == RemoteName(*self); });
  if (own != files.end()) std::rotate(files.begin(), own, own + 1);
}

// Returns the sight of the owner of the first of `files`, which have one epoch.
absl::StatusOr<OwnerSight> SightOf(const std::string& directory,
                                   const std::vector<OwnerFile>& files) {
  ASSIGN_OR_RETURN(RemoteFiles* const store, RemoteFilesFor(directory));
  OwnerSight sight;
  sight.newest_epoch = files.front().epoch;
  for (const OwnerFile& file : files) {
    absl::StrAppend(&sight.names, file.name, " ");
    // Nobody renews a claim.
    if (file.is_claim) continue;
    ASSIGN_OR_RETURN(const RemoteFiles::About about,
                     store->Look(JoinedPath(OwnerPath(directory), file.name)));
    absl::StrAppend(&sight.stamp, about.version, "/");
  }
  ASSIGN_OR_RETURN(
      const std::string bytes,
      store->Read(JoinedPath(OwnerPath(directory), files.front().name),
                  kMaxCheckedBytes));
  sight.owner = Decode(bytes);
  if (sight.owner && sight.owner->chief_epoch() != sight.newest_epoch) {
    sight.owner.reset();
  }
  absl::StrAppend(&sight.stamp, sight.names,
                  sight.owner && sight.owner->released());
  return sight;
}

absl::Status NoSuchEpoch(const std::string& path, absl::string_view what,
                         int64_t epoch) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has the ", what, " ", epoch,
      ", which no process has been given: put the file back as it was, or "
      "remove it while no process uses the directory"));
}

// One that is listed may be removed by the next owner before it is read.
constexpr int kMostLooks = 5;

absl::StatusOr<OwnerSight> LookInStore(const std::string& directory,
                                       const durable::DirectoryOwner* self) {
  for (int look = 1;; ++look) {
    ASSIGN_OR_RETURN(std::vector<OwnerFile> files, OwnerFilesIn(directory));
    const bool has_left_behind =
        self != nullptr &&
        std::any_of(files.begin(), files.end(), [&](const OwnerFile& file) {
          return IsLeftBehind(file, *self);
        });
    LeaveNewest(self, files);
    if (files.empty()) return OwnerSight{.has_left_behind = has_left_behind};
    // The next one is larger.
    if (files.front().epoch >= kMaxChiefEpoch) {
      return NoSuchEpoch(JoinedPath(OwnerPath(directory), files.front().name),
                         "chief_epoch", files.front().epoch);
    }
    absl::StatusOr<OwnerSight> sight = SightOf(directory, files);
    if (sight.ok()) sight->has_left_behind = has_left_behind;
    if (!absl::IsNotFound(sight.status())) return sight;
    if (look < kMostLooks) continue;
    return absl::UnavailableError(absl::StrCat(
        OwnerPath(directory), ": changes each time that it is read"));
  }
}

// Gives `owner` the run and the places of the newest record in a store: a claim
// has none.
absl::Status Inherit(const std::string& directory,
                     const std::vector<OwnerFile>& files,
                     durable::DirectoryOwner& owner) {
  const auto newest =
      std::find_if(files.rbegin(), files.rend(), [](const OwnerFile& file) {
        return !file.is_claim && file.epoch < kMaxChiefEpoch;
      });
  if (newest == files.rend()) return absl::OkStatus();
  const std::string path = JoinedPath(OwnerPath(directory), newest->name);
  ASSIGN_OR_RETURN(RemoteFiles* const store, RemoteFilesFor(directory));
  ASSIGN_OR_RETURN(const std::string bytes,
                   store->Read(path, kMaxCheckedBytes));
  const std::optional<durable::DirectoryOwner> before = Decode(bytes);
  if (!before) return absl::OkStatus();
  RETURN_IF_ERROR(CheckEpochs(*before, path));
  owner.set_run_id(before->run_id());
  *owner.mutable_ps() = before->ps();
  return absl::OkStatus();
}

// Writes the claim of `owner`. Returns true if it is alone; then `owner` has
// what it inherits.
absl::StatusOr<bool> ClaimAlone(const std::string& directory,
                                durable::DirectoryOwner& owner) {
  owner.clear_run_id();
  owner.clear_ps();
  RETURN_IF_ERROR(
      WriteFileDurably(JoinedPath(OwnerPath(directory), ClaimName(owner)),
                       EncodeChecked(kOwnerMagic, owner.SerializeAsString())));
  ASSIGN_OR_RETURN(const std::vector<OwnerFile> files, OwnerFilesIn(directory));
  if (std::any_of(files.begin(), files.end(), [&](const OwnerFile& file) {
        return file.epoch >= owner.chief_epoch() &&
               file.name != ClaimName(owner);
      })) {
    return false;
  }
  // The owner before sees the claim from now on, and records nothing more.
  const absl::Status inherited = Inherit(directory, files, owner);
  // A later owner alone removes the newest record.
  if (absl::IsNotFound(inherited)) return false;
  RETURN_IF_ERROR(inherited);
  return true;
}

// A place's epoch has its chief's epoch in its upper half.
constexpr int kPlaceShift = 32;

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

absl::StatusOr<bool> ClaimStore(const std::string& directory,
                                durable::DirectoryOwner& owner) {
  const absl::StatusOr<bool> is_alone = ClaimAlone(directory, owner);
  if (!is_alone.ok() || !*is_alone) {
    ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
    // The owner removes it if this fails.
    const absl::Status removed =
        files->Remove(JoinedPath(OwnerPath(directory), ClaimName(owner)));
    if (!removed.ok()) LOG(WARNING) << removed.message();
    return is_alone;
  }
  // After an error the record may be there, or come: with the claim beside it
  // nobody else gets this epoch.
  RETURN_IF_ERROR(WriteOwner(directory, owner));
  return true;
}

absl::Status RemoveLeftBehind(const std::string& directory,
                              const durable::DirectoryOwner& owner) {
  ASSIGN_OR_RETURN(RemoteFiles* const files, RemoteFilesFor(directory));
  ASSIGN_OR_RETURN(const std::vector<OwnerFile> found, OwnerFilesIn(directory));
  for (const OwnerFile& file : found) {
    if (!IsLeftBehind(file, owner)) continue;
    RETURN_IF_ERROR(files->Remove(JoinedPath(OwnerPath(directory), file.name)));
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
      sight.owner ? std::max(sight.owner->chief_epoch(), sight.newest_epoch) + 1
                  : std::max({int64_t{1}, sight.newest_epoch + 1,
                              absl::ToUnixSeconds(now) - kYear2026}));
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
