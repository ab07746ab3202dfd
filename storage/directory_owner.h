#ifndef PARASOL_STORAGE_DIRECTORY_OWNER_H_
#define PARASOL_STORAGE_DIRECTORY_OWNER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/checkpoint.pb.h"
#include "storage/owner_watch.h"

// The file CHIEF of a checkpoint directory, which names its owner;
// storage/FORMAT.md describes it. In a store it is a folder with a file of each
// owner, which nobody else writes: the newest one's, by its epoch, counts.
namespace parasol {

// Returns the file's path.
std::string OwnerPath(const std::string& directory);

// Returns what the file says, without the lock. A file that is damaged has a
// stamp but no owner.
// Of two owners with one epoch, which a store may have for a moment, it is
// `self` if that is one.
//   Unavailable  the file can't be read now.
absl::StatusOr<OwnerSight> LookAtOwner(
    const std::string& directory,
    const durable::DirectoryOwner* self = nullptr);

// Returns true if no other owner in a store's directory has the epoch of
// `owner`, whose file is there, or a larger one. Of owners that write their
// files and then ask at most one learns this: a list shows all that was written
// before.
absl::StatusOr<bool> IsOnlyOwner(const std::string& directory,
                                 const durable::DirectoryOwner& owner);

// Removes the owner's file from a store, or all files of smaller epochs.
absl::Status RemoveOwner(const std::string& directory,
                         const durable::DirectoryOwner& owner);
absl::Status RemoveOlderOwners(const std::string& directory,
                               const durable::DirectoryOwner& owner);

// The largest epoch of an owner: places' epochs are made of it.
inline constexpr int64_t kMaxChiefEpoch = (int64_t{1} << 31) - 1;

// Returns OK if the epochs of `owner`, which `path` has, are such that later
// ones can be given.
//   InvalidArgument  they are not; the message names the value.
absl::Status CheckEpochs(const durable::DirectoryOwner& owner,
                         const std::string& path);

// Replaces the file, durably.
absl::Status WriteOwner(const std::string& directory,
                        const durable::DirectoryOwner& owner);

// Renews the owner's lease: changes the file's stamp if it still names `owner`.
//   NotFound  there is no file, or it names another one.
absl::Status TouchOwner(const std::string& directory,
                        const durable::DirectoryOwner& owner);

// Returns the record of this process as the owner after the one in `sight`,
// with an epoch that is one larger. Without an owner in `sight`, the epoch is
// the time in seconds since the year 2026, so that epochs grow even if the file
// is lost; they stay below 2^30 for 30 years.
durable::DirectoryOwner NextOwner(const OwnerSight& sight,
                                  const std::string& job_name, absl::Time now);

// Returns a text for messages: "process 17 on node-a, job mnist, since
// 2026-11-22T06:00:00Z".
std::string Describe(const std::optional<durable::DirectoryOwner>& owner);

}  // namespace parasol

#endif  // PARASOL_STORAGE_DIRECTORY_OWNER_H_
