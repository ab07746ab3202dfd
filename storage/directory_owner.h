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
// owner, its record, which nobody else writes: the newest one's, by its epoch,
// counts. A process that wants the directory writes a claim there first.
namespace parasol {

// Returns the file's path.
std::string OwnerPath(const std::string& directory);

// Returns what the file says, without the lock. A file that is damaged has a
// stamp but no owner.
// In a store the files of the largest epoch count, and the files of `self`, the
// owner that looks, rather than what others have left of an epoch not larger.
//   InvalidArgument  a store's file is named after an epoch that no process has
//                    been given, and there is no `self`.
//   Unavailable  the file can't be read now.
absl::StatusOr<OwnerSight> LookAtOwner(
    const std::string& directory,
    const durable::DirectoryOwner* self = nullptr);

// Makes `owner` the owner of a store's directory, unless others want it or have
// it: writes its claim, and if nobody else has the epoch or a larger one its
// record, with the run and the places of the newest record that is there. Of
// owners that claim it at once at most one learns true: a list shows all that
// was written before.
absl::StatusOr<bool> ClaimStore(const std::string& directory,
                                durable::DirectoryOwner& owner);

// Removes from a store what others have left whose epoch is not larger than the
// epoch of `owner`, which owns the directory, and its claim.
absl::Status RemoveLeftBehind(const std::string& directory,
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
