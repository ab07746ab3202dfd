#ifndef PARASOL_TOOL_PUBLISH_PUBLISHED_DIRECTORY_H_
#define PARASOL_TOOL_PUBLISH_PUBLISHED_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/directory_lock.h"
#include "tool/publish/published_version.h"

namespace parasol {

// The versions of a model in one directory, as its only publisher has them. A
// version gets its name once it is whole, and never changes then; what is not
// yet, or no longer, a version lies in ".publisher" (docs/publishing.md).
// Move-only; not thread-safe.
class PublishedDirectory {
 public:
  // Creates the directory if it is missing, takes it for this object, removes
  // what an earlier process has left unfinished, and reads the manifests.
  //   Unavailable  another process publishes there.
  //   DataLoss     the newest version's manifest is missing or damaged.
  //   any other    as for storage/durable_file.h.
  static absl::StatusOr<PublishedDirectory> Open(const std::string& directory);

  const std::string& path() const { return directory_; }
  // Returns the newest version; null: there is none. Only its tensors are kept
  // in memory.
  const PublishedVersion* newest() const;
  std::string PathOf(int64_t version) const;

  // Returns OK if a receiver can rebuild the newest version: it and those that
  // it builds on are there, with files of the right sizes. There is one.
  //   NotFound, DataLoss  the message names the first file that is gone or has
  //                       another size.
  absl::Status CheckChain() const;
  // Returns how many versions the newest one is, with those that it builds on;
  // 0: there is none.
  int ChainLength() const;
  // Returns the path of the newest version's state as one safetensors file, for
  // the publisher. There is a newest version.
  std::string StatePath() const;

  // Returns the path at which the state of the next version is to be written.
  std::string NextStatePath() const;
  // Makes an empty folder for the files of the next version.
  absl::StatusOr<std::string> Stage();
  // Makes what lies in the folder of Stage() the version `version`, with its
  // manifest, all at once and durably, and the state in NextStatePath() its
  // state if that is still there. An error means that it is no version; what
  // fails once it has its name is a line in the log.
  //   FailedPrecondition  its manifest could not be read again: it has too many
  //                       tensors, or a name that is no UTF-8.
  absl::Status Commit(PublishedVersion version);
  // Removes what is of no version, after an error.
  absl::Status Abandon() const;

  // Removes the oldest versions so that `max_to_keep` stay (0: all stay), and
  // those besides that they build on. They may be gone already. An error is a
  // line in the log; the next call tries again.
  void Prune(int max_to_keep);

 private:
  PublishedDirectory(std::string directory, DirectoryLock lock)
      : directory_(std::move(directory)), lock_(std::move(lock)) {}
  std::string WorkPath(absl::string_view name) const;
  absl::Status ReadVersions();
  void Insert(PublishedVersion version);
  absl::Status RemoveOldest(int max_to_keep);

  std::string directory_;
  DirectoryLock lock_;
  // All but the newest one without their tensors.
  std::map<int64_t, PublishedVersion> versions_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_PUBLISH_PUBLISHED_DIRECTORY_H_
