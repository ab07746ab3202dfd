#ifndef PARASOL_ML_INPUT_OBJECT_OBJECT_CACHE_H_
#define PARASOL_ML_INPUT_OBJECT_OBJECT_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "ml/input/object/stored_object.h"

namespace parasol {

// Copies of objects in a folder of this machine, where all processes find them
// that are given the same one: each object is brought once. A copy is named by
// the object's URI, version and size, so an object that has changed is another
// one. What is not whole has another name. No copy is ever removed.
// Thread-safe.
//
// A process sees one version of an object: what it has brought it does not
// bring again.
class ObjectCache {
 public:
  struct Options {
    std::string directory = {};  // "": DefaultDirectory()
    size_t piece_bytes = 8 << 20;
    size_t threads = 8;  // pieces that are read at a time
    // How long a process may bring nothing while this one waits for it.
    absl::Duration patience = absl::Minutes(10);
    Clock* clock = &Clock::Real();
  };

  explicit ObjectCache(Options options)
      : options_(std::move(options)), directory_(options_.directory) {}

  // Returns the cache of this process, for a machine has one place for copies.
  static ObjectCache& OfProcess();
  // Returns the folder, which is there then.
  //   InvalidArgument, …  it can't be made, or is not the user's own.
  absl::StatusOr<std::string> Directory() const ABSL_LOCKS_EXCLUDED(mu_);
  // Sets the folder, "" for DefaultDirectory(), before anything is brought.
  void SetDirectory(std::string directory) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a folder of the user's own below TMPDIR, or /tmp.
  //   InvalidArgument  TMPDIR is no directory.
  static absl::StatusOr<std::string> DefaultDirectory();

  // Brings the objects with these URIs, several at a time, in pieces. Waits
  // while another process brings one, and names it.
  //   InvalidArgument   there is no room for them, of which nothing was brought
  //                     yet; or the folder is not the user's own.
  //   Unavailable       network, server or the other process fail.
  //   DataLoss          an object has changed since this process brought it, or
  //                     changes all the time.
  //   any other         as for StoredObject; the system's, which names a file.
  absl::Status Bring(absl::Span<const std::string> uris)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Brings an object, or with all objects of a folder, but not of folders in
  // it, and returns the path of a file, or a folder, with its own name: for
  // those who tell files by their names. It is made of links to copies.
  //   NotFound   there is no such object, or no such folder.
  //   any other  as for Bring().
  absl::StatusOr<std::string> BringNamed(const std::string& uri)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Brings the objects of a folder that have these names, plain ones or such of
  // folders in it ("a/x"), and returns the path of a folder with these names.
  // Fails as above, but with NotFound if any is not there.
  absl::StatusOr<std::string> BringNamed(const std::string& folder,
                                         absl::Span<const std::string> names)
      ABSL_LOCKS_EXCLUDED(mu_);

  // An object to be read: as a copy, or in the store.
  struct Opened {
    std::string copy;                            // path; "": there is none
    std::shared_ptr<const StoredObject> object;  // null: there is a copy
  };

  // Opens an object as a copy, if it has been brought, or else where it is, for
  // those who read but a part of it.
  //   any  as for Bring() and StoredObject.
  absl::StatusOr<Opened> Open(const std::string& uri) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the path of the copy that this process has brought, or has found,
  // if it is still there.
  std::optional<std::string> Find(const std::string& uri) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Has a file of `bytes` bytes stand for a URI that is of no store, until
  // TakeBack().
  void Lend(const std::string& uri, std::string path, uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  void TakeBack(const std::string& uri) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the size of the file that stands for a URI; nullopt: none does.
  std::optional<uint64_t> LentBytes(const std::string& uri) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // An object's URI, and its name in a folder of links.
  struct Named {
    std::string uri;
    std::string name;
  };
  // Brings the objects and returns a folder with links to their copies, `inner`
  // in one whose name is of all their versions.
  absl::StatusOr<std::string> BringLinked(const std::string& what,
                                          const std::vector<Named>& objects,
                                          const std::string& inner)
      ABSL_LOCKS_EXCLUDED(mu_);

  struct Copy {
    std::string path;
    std::string version;
    uint64_t bytes = 0;
    bool is_lent = false;
  };
  // An object and the path of its copy.
  struct Task {
    std::shared_ptr<const StoredObject> object;
    std::string path;
  };

  bool HasBrought(const std::string& uri) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<Task> TaskOf(const std::string& uri,
                              const std::string& directory) const;
  // Returns the objects that have no copy.
  absl::StatusOr<std::vector<Task>> Lacking(
      const std::vector<std::string>& uris, const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status BringAll(const std::vector<Task>& tasks,
                        const std::string& directory);
  // Brings one object, with so many threads.
  absl::Status BringOne(Task task, size_t threads, const std::string& directory)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Notes that an object has a copy.
  //   DataLoss  this process has had another version of it.
  absl::Status Note(const Task& task) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  mutable absl::Mutex mu_;
  std::string directory_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Copy> copies_ ABSL_GUARDED_BY(mu_);  // URI to copy
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_OBJECT_CACHE_H_
