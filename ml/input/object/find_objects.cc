#include "ml/input/object/find_objects.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/open_object.h"

namespace parasol {
namespace {

constexpr size_t kMaxEntries = size_t{1} << 18;

bool IsGlob(absl::string_view text) {
  return text.find_first_of("*?[\\") != absl::string_view::npos;
}

// Looks for a glob's objects in folder after folder.
class ObjectGlob {
 public:
  ObjectGlob(const ObjectStore& store, absl::string_view path)
      : store_(store), parts_(absl::StrSplit(path, '/')) {}

  // Returns what all parts of the path match.
  absl::StatusOr<std::vector<ObjectEntry>> Match() {
    RETURN_IF_ERROR(MatchFrom(0, ""));
    return std::move(found_);
  }

 private:
  absl::Status MatchFrom(size_t part, const std::string& folder) {
    std::string path = folder;
    // Up to the next wildcard.
    for (; part < parts_.size() && !IsGlob(parts_[part]); ++part) {
      absl::StrAppend(&path, part == 0 ? "" : "/", parts_[part]);
    }
    if (part == parts_.size()) return AddIfThere(path);
    const bool is_last = part + 1 == parts_.size();
    ASSIGN_OR_RETURN(const std::vector<ObjectEntry> entries,
                     store_.List(path, is_last ? ObjectStore::Depth::kFiles
                                               : ObjectStore::Depth::kFolder));
    looked_at_ += entries.size();
    if (looked_at_ > kMaxEntries) {
      return absl::InvalidArgumentError(
          absl::StrCat("looks at more than ", kMaxEntries,
                       " objects and folders; name the folder of the data "
                       "more closely"));
    }
    for (const ObjectEntry& entry : entries) {
      const std::string name = entry.path.substr(entry.path.rfind('/') + 1);
      if (entry.is_folder == is_last ||
          fnmatch(parts_[part].c_str(), name.c_str(), FNM_PERIOD) != 0) {
        continue;
      }
      if (is_last) {
        found_.push_back(entry);
      } else {
        RETURN_IF_ERROR(MatchFrom(part + 1, entry.path));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddIfThere(const std::string& path) {
    const absl::StatusOr<ObjectEntry> entry = store_.Find(path);
    if (absl::IsNotFound(entry.status())) return absl::OkStatus();
    RETURN_IF_ERROR(entry.status());
    if (!entry->is_folder) found_.push_back(*entry);
    return absl::OkStatus();
  }

  const ObjectStore& store_;
  const std::vector<std::string> parts_;
  std::vector<ObjectEntry> found_;
  size_t looked_at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<FoundObject>> FindObjects(absl::string_view uri) {
  if (IsWebUrl(uri)) {
    ASSIGN_OR_RETURN(const auto object, OpenStoredObject(std::string(uri)));
    return std::vector<FoundObject>{{object->uri(), object->bytes()}};
  }
  ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(uri));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ObjectStore> store,
                   ObjectStore::Open(parts));
  const absl::StatusOr<ObjectEntry> itself = store->Find(parts.path);
  if (itself.ok() && !itself->is_folder) {
    return std::vector<FoundObject>{{parts.Of(itself->path), itself->bytes}};
  }
  const std::string shown = OneLine(uri);
  if (itself.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        shown, " is a folder; name its files, as ", shown, "/* does"));
  }
  if (!absl::IsNotFound(itself.status()) || !IsGlob(parts.path)) {
    return itself.status();
  }
  ASSIGN_OR_RETURN(std::vector<ObjectEntry> entries,
                   ObjectGlob(*store, parts.path).Match(), _ << shown);
  if (entries.empty()) {
    return absl::NotFoundError(absl::StrCat("there is no object ", shown));
  }
  std::sort(entries.begin(), entries.end(),
            [](const ObjectEntry& a, const ObjectEntry& b) {
              return a.path < b.path;
            });
  std::vector<FoundObject> found;
  for (const ObjectEntry& entry : entries) {
    found.push_back({parts.Of(entry.path), entry.bytes});
  }
  return found;
}

}  // namespace parasol
