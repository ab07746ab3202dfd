#ifndef PARASOL_ML_INPUT_OBJECT_OBJECT_STORE_H_
#define PARASOL_ML_INPUT_OBJECT_OBJECT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "ml/input/library/arrow_library.h"
#include "ml/input/object/attempts.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/stored_object.h"

namespace parasol {

// A file or a folder in a store.
struct ObjectEntry {
  std::string path;
  uint64_t bytes = 0;
  bool is_folder = false;
};

// A bucket of an object store, or the files of a Hadoop cluster, by Apache
// Arrow. Credentials are found as the store's own programs find them: in the
// environment, in files of the user, by the machine's role. Thread-safe.
class ObjectStore : public std::enable_shared_from_this<ObjectStore> {
 public:
  // Opens the store of `uri`. One process opens a store once: it stays.
  static absl::StatusOr<std::shared_ptr<const ObjectStore>> Open(
      const ObjectUri& uri, Clock& clock = Clock::Real());

  // Parts of a folder: the files in it, and perhaps its folders; both; or all
  // files below it, and perhaps folders.
  enum class Depth {
    kFiles = PARASOL_ARROW_FILES,
    kFolder = PARASOL_ARROW_FOLDER,
    kAll = PARASOL_ARROW_ALL
  };
  // Returns what the folder at a path has; nothing if there is no such folder.
  absl::StatusOr<std::vector<ObjectEntry>> List(const std::string& folder,
                                                Depth depth) const;

  // Returns the file or folder at a path.
  absl::StatusOr<ObjectEntry> Find(const std::string& path) const;

  absl::StatusOr<std::shared_ptr<const StoredObject>> OpenObject(
      const std::string& path) const;

  // Bytes of an object that is written. They may be asked for again.
  struct Source {
    uint64_t bytes = 0;
    std::function<absl::Status(uint64_t offset, absl::Span<char> out)> read;
  };
  // Makes an object of the bytes, or replaces it, as a whole: readers see the
  // old one or the new one. After an error it may be there all the same, or be
  // there later: an answer may have been lost. Large ones travel in parts.
  //   any other  an error of `source`.
  absl::Status Write(const std::string& path, const Source& source) const;
  // Does so without a second attempt, but for parts.
  absl::Status WriteOnce(const std::string& path, const Source& source) const;

  // Removes an object, or all below a folder; nothing may be there.
  absl::Status Remove(const std::string& path) const;
  absl::Status RemoveFolder(const std::string& folder) const;

 private:
  friend class ArrowObject;

  ObjectStore(ArrowLibrary library, ObjectUri uri, ParasolArrowStore* store,
              Clock& clock)
      : library_(std::move(library)),
        uri_(std::move(uri)),
        store_(store),
        attempts_(clock) {}

  static absl::Status ErrorOf(const ObjectUri& uri, const std::string& shown,
                              int code, absl::string_view what);
  // Returns what a call of the library for what is at `path` returned.
  absl::Status Call(absl::string_view path,
                    absl::FunctionRef<int(char* error)> call) const;
  // Opens the object without a second attempt.
  absl::StatusOr<std::shared_ptr<const StoredObject>> OpenOnce(
      const std::string& path) const;

  const ArrowLibrary library_;
  const ObjectUri uri_;
  ParasolArrowStore* const store_;  // lives as long as the process
  const Attempts attempts_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_OBJECT_OBJECT_STORE_H_
