#include "ml/input/object/object_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/parallel_calls.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "ml/input/feature/fingerprint.h"
#include "ml/input/object/copy_lock.h"
#include "ml/input/object/object_copy.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/open_object.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// An object that is written again and again while it is brought.
constexpr int kMostVersions = 3;
constexpr int kMebiShift = 20;

// Returns the name of a copy, of 128 bits that hardly two versions have.
std::string NameOfCopy(const StoredObject& object) {
  const auto half = [&](absl::string_view which) {
    return Fingerprint()
        .AddPart(which)
        .AddPart(object.uri())
        .AddPart(object.version())
        .AddPart(absl::StrCat(object.bytes()))
        .Get();
  };
  return absl::StrFormat("%016x%016x", half("first"), half("second"));
}

// Creates the folder, if it isn't there. The default one lies where everybody
// may write: there another user may have been first.
absl::Status MakeFolder(const std::string& folder, bool is_default) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  constexpr mode_t kOwnersOnly = 0700;
  if (mkdir(folder.c_str(), kOwnersOnly) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("the folder for copies of objects, ", folder,
                            " (--data_cache_dir)"));
  }
  struct stat about;
  if (lstat(folder.c_str(), &about) != 0) {
    return absl::ErrnoToStatus(errno, folder);
  }
  if (is_default ? S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
                       (about.st_mode & (S_IWGRP | S_IWOTH)) == 0
                 : fs::is_directory(folder, error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": is no folder", is_default ? " of this user alone" : "",
      "; name another one for copies of objects in --data_cache_dir"));
}

// Removes what processes that were killed have left. One that can't be removed
// is in nobody's way.
void RemoveAbandoned(const std::string& directory) {
  const std::string ending = UnfinishedCopy("");
  std::error_code error;
  std::vector<std::string> left;
  for (fs::directory_iterator entry(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    if (absl::EndsWith(path, ending)) left.push_back(path);
  }
  for (const std::string& path : left) {
    const auto lock = CopyLock::TryTake(path);
    if (lock.ok() && lock->has_value()) fs::remove(path, error);
  }
}

// Returns the last part of a path.
std::string NameIn(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// What a URI names, and how the files on this machine are called.
struct NamedObjects {
  std::string name;
  bool is_folder = false;
  std::vector<std::string> uris;   // the object, or all of the folder
  std::vector<std::string> names;  // of these files
};

absl::StatusOr<NamedObjects> NamedObjectsAt(const std::string& uri) {
  if (IsWebUrl(uri)) {
    ASSIGN_OR_RETURN(const WebUrl url, ParseWebUrl(uri));
    return NamedObjects{.name = url.name,
                        .is_folder = false,
                        .uris = {uri},
                        .names = {url.name}};
  }
  ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(uri));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ObjectStore> store,
                   ObjectStore::Open(parts));
  ASSIGN_OR_RETURN(const ObjectEntry itself, store->Find(parts.path));
  std::vector<ObjectEntry> entries = {itself};
  if (itself.is_folder) {
    ASSIGN_OR_RETURN(entries,
                     store->List(parts.path, ObjectStore::Depth::kFiles));
    std::erase_if(entries, [](const ObjectEntry& e) { return e.is_folder; });
  }
  NamedObjects named = {.name = NameIn(parts.path),
                        .is_folder = itself.is_folder,
                        .uris = {},
                        .names = {}};
  for (const ObjectEntry& entry : entries) {
    named.uris.push_back(parts.Of(entry.path));
    named.names.push_back(NameIn(entry.path));
  }
  return named;
}

// Makes `folder` of links: a name for each copy, unless all are there. Others
// may have removed some. Whoever calls it has the right to write the folder.
absl::Status MakeLinks(
    const std::string& folder,
    const std::vector<std::pair<std::string, std::string>>& copies) {
  std::error_code error;
  const bool is_whole =
      std::all_of(copies.begin(), copies.end(), [&](const auto& copy) {
        return fs::exists(fs::path(folder) / copy.second, error);
      });
  if (is_whole && fs::is_directory(folder, error)) return absl::OkStatus();
  const std::string unfinished = UnfinishedCopy(folder);
  fs::remove_all(folder, error);
  fs::remove_all(unfinished, error);
  error.clear();
  fs::create_directories(unfinished, error);
  for (const auto& [copy, name] : copies) {
    const fs::path link = fs::path(unfinished) / name;
    if (!error) fs::create_directories(link.parent_path(), error);
    if (!error) fs::create_hard_link(copy, link, error);
  }
  if (!error) fs::rename(unfinished, folder, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), folder);
}

// Calls `call` with the numbers below `count`, `threads` at a time, until one
// fails.
absl::Status ForEach(size_t count, size_t threads,
                     const std::function<absl::Status(size_t)>& call) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> has_failed = false;
  threads = std::clamp<size_t>(count, 1, threads);
  return ParallelCalls(threads).Run([&](size_t) -> absl::Status {
    for (size_t i = next++; i < count && !has_failed; i = next++) {
      const absl::Status status = call(i);
      if (!status.ok()) has_failed = true;
      RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  });
}

}  // namespace

ObjectCache& ObjectCache::OfProcess() {
  static auto* const cache = new ObjectCache({});
  return *cache;
}

void ObjectCache::SetDirectory(std::string directory) {
  const absl::MutexLock lock(&mu_);
  directory_ = std::move(directory);
}

absl::StatusOr<std::string> ObjectCache::DefaultDirectory() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "TMPDIR, where copies of objects are kept, is no directory; set it, or "
        "--data_cache_dir: ",
        error.message()));
  }
  return (folder / absl::StrCat("parasol-data-cache-", geteuid())).string();
}

absl::StatusOr<std::string> ObjectCache::Directory() const {
  std::string directory;
  {
    const absl::MutexLock lock(&mu_);
    directory = directory_;
  }
  const bool is_default = directory.empty();
  if (is_default) {
    ASSIGN_OR_RETURN(directory, DefaultDirectory());
  } else if (IsUri(directory)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--data_cache_dir=", OneLine(directory),
                     ": copies of objects are kept in a folder of this "
                     "machine; name one"));
  }
  RETURN_IF_ERROR(MakeFolder(directory, is_default));
  return directory;
}

absl::StatusOr<ObjectCache::Task> ObjectCache::TaskOf(
    const std::string& uri, const std::string& directory) const {
  Task task;
  ASSIGN_OR_RETURN(task.object, OpenStoredObject(uri));
  task.path = absl::StrCat(directory, "/", NameOfCopy(*task.object));
  return task;
}

absl::StatusOr<std::vector<ObjectCache::Task>> ObjectCache::Lacking(
    const std::vector<std::string>& uris, const std::string& directory) {
  std::vector<Task> tasks(uris.size());
  RETURN_IF_ERROR(
      ForEach(uris.size(), options_.threads, [&](size_t i) -> absl::Status {
        ASSIGN_OR_RETURN(tasks[i], TaskOf(uris[i], directory));
        if (!IsWholeCopy(tasks[i].path, tasks[i].object->bytes())) {
          return absl::OkStatus();
        }
        return Note(std::exchange(tasks[i], Task()));
      }));
  std::erase_if(tasks, [](const Task& task) { return task.object == nullptr; });
  return tasks;
}

absl::Status ObjectCache::Bring(absl::Span<const std::string> uris) {
  std::set<std::string> wanted;
  for (const std::string& uri : uris) {
    if (!Find(uri).has_value()) wanted.insert(uri);
  }
  if (wanted.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  ASSIGN_OR_RETURN(
      const std::vector<Task> tasks,
      Lacking(std::vector<std::string>(wanted.begin(), wanted.end()),
              directory));
  return tasks.empty() ? absl::OkStatus() : BringAll(tasks, directory);
}

absl::Status ObjectCache::BringAll(const std::vector<Task>& tasks,
                                   const std::string& directory) {
  RemoveAbandoned(directory);
  uint64_t bytes = 0;
  uint64_t lacking = 0;  // of which nobody has the room yet
  for (const Task& task : tasks) {
    bytes += task.object->bytes();
    std::error_code error;
    if (!fs::exists(UnfinishedCopy(task.path), error)) {
      lacking += task.object->bytes();
    }
  }
  const std::string what = absl::StrCat(
      OneLine(tasks.front().object->uri()),
      tasks.size() == 1 ? ""
                        : absl::StrCat(" and ", tasks.size() - 1, " more"));
  if (lacking > FreeBytes(directory)) {
    return NoRoomFor(lacking, what, directory);
  }
  const absl::Time begin = options_.clock->Now();
  LOG(INFO) << "bringing " << what << " to " << directory << ", "
            << (bytes >> kMebiShift) << " MiB";
  // Many objects at a time, or many pieces of few.
  const size_t at_a_time = std::min(tasks.size(), options_.threads);
  RETURN_IF_ERROR(ForEach(tasks.size(), at_a_time, [&](size_t i) {
    return BringOne(tasks[i], options_.threads / at_a_time, directory);
  }));
  LOG(INFO) << what << " is there after "
            << absl::FormatDuration(absl::Trunc(options_.clock->Now() - begin,
                                                absl::Milliseconds(1)));
  return absl::OkStatus();
}

absl::Status ObjectCache::BringOne(Task task, size_t threads,
                                   const std::string& directory) {
  for (int version = 1;; ++version) {
    const std::string& uri = task.object->uri();
    ASSIGN_OR_RETURN(const CopyLock lock,
                     CopyLock::Take(UnfinishedCopy(task.path),
                                    {.what = OneLine(uri),
                                     .patience = options_.patience,
                                     .clock = options_.clock}));
    if (IsWholeCopy(task.path, task.object->bytes())) return Note(task);
    const absl::Status written =
        WriteCopy(*task.object, task.path, options_.piece_bytes, threads);
    if (written.ok()) return Note(task);
    if (!absl::IsDataLoss(written) || version == kMostVersions) return written;
    LOG(WARNING) << written.message() << "; it is brought again";
    ASSIGN_OR_RETURN(task, TaskOf(uri, directory));
  }
}

absl::Status ObjectCache::Note(const Task& task) {
  const absl::MutexLock lock(&mu_);
  const std::string& uri = task.object->uri();
  const Copy copy = {.path = task.path,
                     .version = task.object->version(),
                     .bytes = task.object->bytes(),
                     .is_lent = false};
  const auto [known, is_new] = copies_.emplace(uri, copy);
  if (is_new || known->second.path == copy.path) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(OneLine(uri),
                   ": the object has changed since this process brought it, "
                   "when it had ",
                   known->second.bytes, " bytes (now ", copy.bytes,
                   "); start the process again"));
}

absl::StatusOr<std::string> ObjectCache::BringNamed(const std::string& uri) {
  ASSIGN_OR_RETURN(const NamedObjects named, NamedObjectsAt(uri));
  std::vector<Named> objects;
  for (size_t i = 0; i < named.uris.size(); ++i) {
    objects.push_back({named.uris[i], named.names[i]});
  }
  ASSIGN_OR_RETURN(
      const std::string folder,
      BringLinked(uri, objects, named.is_folder ? named.name : "file"));
  return named.is_folder ? folder : absl::StrCat(folder, "/", named.name);
}

absl::StatusOr<std::string> ObjectCache::BringNamed(
    const std::string& folder, absl::Span<const std::string> names) {
  ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(folder));
  std::vector<Named> objects;
  for (const std::string& name : names) {
    objects.push_back({parts.Of(absl::StrCat(parts.path, "/", name)), name});
  }
  return BringLinked(folder, objects, "files");
}

absl::StatusOr<std::string> ObjectCache::BringLinked(
    const std::string& what, const std::vector<Named>& objects,
    const std::string& inner) {
  std::vector<std::string> uris;
  for (const Named& object : objects) uris.push_back(object.uri);
  RETURN_IF_ERROR(Bring(uris));
  // The folder's name is of all versions that are in it.
  Fingerprint version;
  std::vector<std::pair<std::string, std::string>> copies;
  for (const Named& object : objects) {
    ASSIGN_OR_RETURN(const Opened opened, Open(object.uri));
    copies.emplace_back(opened.copy, object.name);
    version.AddPart(NameIn(opened.copy)).AddPart(object.name);
  }
  ASSIGN_OR_RETURN(const std::string directory, Directory());
  const std::string outer =
      absl::StrFormat("%s/%016x.named", directory, version.Get());
  ASSIGN_OR_RETURN(const CopyLock lock,
                   CopyLock::Take(outer, {.what = OneLine(what),
                                          .patience = options_.patience,
                                          .clock = options_.clock}));
  std::error_code error;
  fs::create_directory(outer, error);
  const std::string linked = absl::StrCat(outer, "/", inner);
  RETURN_IF_ERROR(MakeLinks(linked, copies));
  return linked;
}

bool ObjectCache::HasBrought(const std::string& uri) const {
  const absl::MutexLock lock(&mu_);
  return copies_.contains(uri);
}

absl::StatusOr<ObjectCache::Opened> ObjectCache::Open(const std::string& uri) {
  // A copy that is gone is brought again, if it is of the same version.
  if (HasBrought(uri)) {
    RETURN_IF_ERROR(Bring({uri}));
  }
  if (std::optional<std::string> copy = Find(uri)) {
    return Opened{.copy = *std::move(copy), .object = nullptr};
  }
  // Without a folder there is no copy.
  const absl::StatusOr<std::string> directory = Directory();
  ASSIGN_OR_RETURN(Task task, TaskOf(uri, directory.value_or("")));
  if (directory.ok() && IsWholeCopy(task.path, task.object->bytes())) {
    RETURN_IF_ERROR(Note(task));
    return Opened{.copy = std::move(task.path), .object = nullptr};
  }
  if (task.object->has_parts()) {
    return Opened{.copy = "", .object = std::move(task.object)};
  }
  // Each part would cost all that is before it.
  RETURN_IF_ERROR(Bring({uri}));
  if (std::optional<std::string> copy = Find(uri)) {
    return Opened{.copy = *std::move(copy), .object = nullptr};
  }
  return absl::UnavailableError(
      absl::StrCat(OneLine(uri), ": its copy was removed while it was opened"));
}

std::optional<std::string> ObjectCache::Find(const std::string& uri) const {
  const absl::MutexLock lock(&mu_);
  const auto copy = copies_.find(uri);
  if (copy == copies_.end() ||
      !IsWholeCopy(copy->second.path, copy->second.bytes)) {
    return std::nullopt;
  }
  return copy->second.path;
}

void ObjectCache::Lend(const std::string& uri, std::string path,
                       uint64_t bytes) {
  const absl::MutexLock lock(&mu_);
  copies_[uri] = {
      .path = std::move(path), .version = "", .bytes = bytes, .is_lent = true};
}

void ObjectCache::TakeBack(const std::string& uri) {
  const absl::MutexLock lock(&mu_);
  copies_.erase(uri);
}

std::optional<uint64_t> ObjectCache::LentBytes(const std::string& uri) const {
  const absl::MutexLock lock(&mu_);
  const auto copy = copies_.find(uri);
  if (copy == copies_.end() || !copy->second.is_lent) return std::nullopt;
  return copy->second.bytes;
}

}  // namespace parasol
