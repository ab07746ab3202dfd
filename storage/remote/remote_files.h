#ifndef PARASOL_STORAGE_REMOTE_REMOTE_FILES_H_
#define PARASOL_STORAGE_REMOTE_REMOTE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The files that URIs name: objects of a store. Each is there as a whole or not
// at all, a look sees all that was written before, and no file gets another
// name. Paths are URIs. Thread-safe.
//
// All functions return, with the URI,
//   NotFound            there is no such file, or no such bucket.
//   PermissionDenied    the store refuses.
//   Unavailable         network or server fail, after several attempts.
//   FailedPrecondition  this machine lacks what stores are read with.
class RemoteFiles {
 public:
  struct Entry {
    std::string name;  // path below the folder: "ckpt-000000000001/MANIFEST"
    uint64_t bytes = 0;
  };
  struct About {
    uint64_t bytes = 0;
    std::string version;  // a text that changes when the file is written
  };
  virtual ~RemoteFiles() = default;

  // Returns all files below a folder, however deep; none if it has none.
  virtual absl::StatusOr<std::vector<Entry>> ListAll(
      const std::string& folder) = 0;
  virtual absl::StatusOr<About> Look(const std::string& path) = 0;

  // Returns the bytes of a file, but at most `max_bytes` + 1.
  virtual absl::StatusOr<std::string> Read(const std::string& path,
                                           size_t max_bytes) = 0;
  // Calls `visit` with all pieces of a file, in any order, from several threads
  // at a time, until it returns an error.
  //   DataLoss  the file has another size than `bytes`, or has changed.
  using VisitPiece =
      absl::FunctionRef<absl::Status(uint64_t offset, absl::string_view piece)>;
  virtual absl::Status ReadPieces(const std::string& path, uint64_t bytes,
                                  VisitPiece visit) = 0;

  // Makes or replaces a file. After an error it may be there all the same.
  virtual absl::Status Write(const std::string& path,
                             absl::string_view bytes) = 0;
  // Does so with one attempt.
  virtual absl::Status WriteOnce(const std::string& path,
                                 absl::string_view bytes) = 0;
  // Makes or replaces a file of the bytes of a file of this machine.
  virtual absl::Status Upload(const std::string& local,
                              const std::string& path) = 0;

  // Removes a file, or all files below a folder; there may be none.
  virtual absl::Status Remove(const std::string& path) = 0;
  virtual absl::Status RemoveFolder(const std::string& folder) = 0;

  // Waits before attempt `attempt`, which is 1 or more, of something that
  // failed.
  virtual void Pause(int attempt) = 0;

  // Returns a folder of this machine for files on their way; it is the user's
  // alone.
  //   InvalidArgument, …  it can't be made: names it.
  virtual absl::StatusOr<std::string> LocalFolder() = 0;
};

// Has this process use `files` for all URIs. Called before any of them is used,
// as main() begins; `files` lives as long as the process does.
void UseRemoteFiles(RemoteFiles* files);

// Returns what UseRemoteFiles() was called with.
//   FailedPrecondition  it was not called: this program uses no stores.
absl::StatusOr<RemoteFiles*> RemoteFilesFor(const std::string& path);

// A folder of this machine for the files of one reader or writer, which ends
// with this object.
class LocalScratch {
 public:
  // Makes it for files on their way from or to `path`. Removes folders
  // that killed processes have left.
  //   ResourceExhausted, Unavailable  it can't be made or locked: names it.
  static absl::StatusOr<std::unique_ptr<LocalScratch>> Make(
      const std::string& path);
  ~LocalScratch();

  LocalScratch(const LocalScratch&) = delete;
  LocalScratch& operator=(const LocalScratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  LocalScratch(std::string path, int lock)
      : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;  // descriptor of the folder, locked
};

// Writes a file of this machine, `local`, of the file at `path`, of `bytes`
// bytes. It is not durable.
//   ResourceExhausted, …  the disk refuses: names `local`.
//   any other             as for RemoteFiles::ReadPieces().
absl::Status BringFile(const std::string& path, uint64_t bytes,
                       const std::string& local);

// Function that is asked before a file is written in a way that what others
// have written there would be lost; its error ends it. An owner's says whether
// it still owns the file's directory.
using MayWrite = absl::FunctionRef<absl::Status()>;
inline absl::Status MayWriteAlways() { return absl::OkStatus(); }

// Appends bytes to a file. Stores have whole files alone, so without
// `is_durable` they are kept in memory until the file is next appended to
// durably, and that rewrites it: each of several attempts reads the file again
// and asks `may_write`. With `as_line` bytes before them that end in no newline
// get one. A file has one process that appends to it. After an error the bytes
// are not kept, but the file may have them all the same.
//   ResourceExhausted  the file is too large for that.
absl::Status AppendRemote(const std::string& path, absl::string_view bytes,
                          bool as_line, bool is_durable,
                          MayWrite may_write = MayWriteAlways);
// Writes what is kept in memory of a file. After an error it stays there.
absl::Status FlushRemote(const std::string& path,
                         MayWrite may_write = MayWriteAlways);

}  // namespace parasol

#endif  // PARASOL_STORAGE_REMOTE_REMOTE_FILES_H_
