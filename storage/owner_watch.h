#ifndef PARASOL_STORAGE_OWNER_WATCH_H_
#define PARASOL_STORAGE_OWNER_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The state of a directory's lock, as the process that wants the directory
// finds it.
enum class OwnerLock {
  kHeld,         // the process that looks holds it
  kBusy,         // another process holds it
  kUnsupported,  // the file system has no locks
};

// One look at a directory's owner.
struct OwnerSight {
  // Contents of the file CHIEF; nullopt if there is none, or it is damaged.
  std::optional<durable::DirectoryOwner> owner = {};
  // A text that changes whenever the owner renews its lease; empty if there is
  // no file.
  std::string stamp = {};
  OwnerLock lock = OwnerLock::kHeld;

  // The rest is of a store, where each owner has a file of its own. Names of
  // the files that the stamp is of; other names are another owner's.
  std::string names = {};
  int64_t newest_epoch = 0;
  // True if there are files that the owner which looks should remove.
  bool has_left_behind = false;
};

// Decides whether a directory may be taken from its owner, by watching it.
// Pure: looks and the time go in. The clocks of the two machines are never
// compared.
class OwnerWatch {
 public:
  enum class Verdict { kTake, kWait, kRefuse };

  // `machine` names the machine of the process that looks, as
  // durable.DirectoryOwner.host does; empty if it is unknown.
  OwnerWatch(std::string machine, absl::Duration lease)
      : machine_(std::move(machine)), lease_(lease) {}

  //   kTake    there is no owner, or it has ended: it has said so, or its
  //            machine is this one and its lock is free, or it has not renewed
  //            its lease while it was watched.
  //   kRefuse  the owner lives: it has renewed its lease meanwhile. Or so many
  //            processes have come and gone that one will have it.
  //   kWait    neither is known yet: look again.
  Verdict Look(const OwnerSight& sight, absl::Time now);

  // Returns the end of the wait, if nothing changes.
  absl::Time end() const { return since_ + lease_; }

 private:
  const std::string machine_;
  const absl::Duration lease_;
  std::optional<std::string> stamp_;
  std::string names_;
  int changes_ = 0;  // number of changes of the names
  absl::Time since_ = absl::InfiniteFuture();
};

// Returns the name of this process's machine for durable.DirectoryOwner.host:
// the host's name, '/', and a number that the kernel draws when it starts.
std::string ThisMachine();

// Returns the host's name alone, for messages.
std::string HostOf(const durable::DirectoryOwner& owner);

}  // namespace parasol

#endif  // PARASOL_STORAGE_OWNER_WATCH_H_
