#include "ml/input/file/file_set.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "base/uri/topic_uri.h"
#include "ml/input/file/open_error.h"
#include "ml/input/object/find_objects.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/object/object_uri.h"

namespace parasol {
namespace {

constexpr size_t kMaxFiles = 65536;
constexpr int64_t kMaxEntries = 4 * kMaxFiles;
constexpr int64_t kMaxEntriesOfGrowing = 1 << 20;
constexpr absl::string_view kGlobCharacters = "*?[\\";

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (kGlobCharacters.find(c) != absl::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Number of directory entries that the glob of this thread may still look at;
// below 0: there were more.
thread_local int64_t entries_left = 0;
// The first error of it but that something is not there, which glob() passes
// over, and the first one that IsNoData().
thread_local absl::Status glob_error;
thread_local absl::Status glob_refusal;

// Returns true if what can't be looked at has nothing to do with data, though a
// wildcard passes it: a circle of links, or a volume's lost+found.
bool IsNoData(absl::string_view name, int error) {
  return error == ELOOP ||
         (error == EACCES &&
          absl::StrContains(absl::StrCat("/", name, "/"), "/lost+found/"));
}

// Notes the error of a call that failed.
void NoteGlobError(const char* name) {
  if (errno == ENOENT || errno == ENOTDIR) return;
  (IsNoData(name, errno) ? glob_refusal : glob_error)
      .Update(OpenError(name, errno));
}

dirent* NextEntry(void* directory) {
  if (--entries_left < 0) return nullptr;
  errno = 0;
  dirent* const entry = readdir(static_cast<DIR*>(directory));
  if (entry == nullptr && errno != 0) NoteGlobError("reading a folder of it");
  return entry;
}

int Noted(int result, const char* name) {
  if (result != 0) NoteGlobError(name);
  return result;
}

absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                              int64_t max_entries) {
  glob_t found = {};
  const absl::Cleanup free_found = [&found] { globfree(&found); };
  found.gl_opendir = [](const char* name) -> void* {
    if (entries_left < 0) return nullptr;
    DIR* const opened = opendir(name);
    if (opened == nullptr) NoteGlobError(name);
    return opened;
  };
  found.gl_readdir = NextEntry;
  found.gl_closedir = [](void* directory) {
    closedir(static_cast<DIR*>(directory));
  };
  found.gl_lstat = [](const char* name, struct stat* about) {
    return Noted(lstat(name, about), name);
  };
  found.gl_stat = [](const char* name, struct stat* about) {
    return Noted(stat(name, about), name);
  };
  entries_left = max_entries;
  glob_error = glob_refusal = absl::OkStatus();
  const int result =
      glob(pattern.c_str(), GLOB_NOSORT | GLOB_ALTDIRFUNC, nullptr, &found);
  if (entries_left < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        pattern, ": looks at more than ", max_entries,
        " files and folders; name the folder of the data more closely"));
  }
  RETURN_IF_ERROR(glob_error) << pattern;
  if (result == GLOB_NOMATCH) {
    RETURN_IF_ERROR(glob_refusal) << pattern;
    return std::vector<std::string>();
  }
  if (result != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat(pattern, ": no memory for the list of its files"));
  }
  if (!glob_refusal.ok()) {
    LOG(WARNING) << pattern << ": passes over " << glob_refusal.message();
  }
  std::vector<std::string> paths(found.gl_pathv,
                                 found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Names of the files in a directory, as many as can be compared.
std::vector<std::string> NamesIn(const std::filesystem::path& directory) {
  constexpr size_t kMaxNames = 1000;
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator() &&
         names.size() < kMaxNames;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& data_dir,
                                                 const std::string& pattern) {
  namespace fs = std::filesystem;
  const std::string path = JoinedPath(data_dir, pattern);
  std::error_code error;
  if (fs::exists(path, error)) return std::vector<std::string>{path};
  const bool is_glob =
      pattern.find_first_of(std::string(kGlobCharacters)) != std::string::npos;
  // A pattern may be too long for a name.
  if (error && !is_glob) return OpenError(path, error.value());
  std::vector<std::string> files;
  if (is_glob) {
    const fs::path directory = Escaped(data_dir);
    ASSIGN_OR_RETURN(files, Glob((directory / pattern).string(), kMaxEntries));
  }
  if (!files.empty()) return files;
  const std::string meant = DidYouMean(fs::path(path).filename().string(),
                                       NamesIn(fs::path(path).parent_path()));
  return absl::NotFoundError(absl::StrCat(
      "there is no file ", path,
      meant.empty() ? absl::StrCat("; is --data_dir=", data_dir, " right?")
                    : meant));
}

// Returns the folder in front of a pattern's first wildcard, or name; empty:
// it names none.
std::string FixedFolder(const std::string& pattern) {
  const size_t wildcard = pattern.find_first_of(std::string(kGlobCharacters));
  const size_t slash = pattern.rfind('/', wildcard);
  if (slash == std::string::npos) return "";
  return pattern.substr(0, std::max<size_t>(1, slash));
}

absl::Status AddFilesOf(const std::string& data_dir, const std::string& pattern,
                        FoundFiles& files) {
  const std::string joined = JoinedPath(data_dir, pattern);
  if (IsUri(joined)) {
    if (const auto bytes = ObjectCache::OfProcess().LentBytes(joined)) {
      files.paths.push_back(joined);
      files.bytes += *bytes;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<FoundObject> found, FindObjects(joined));
    for (const FoundObject& object : found) {
      files.paths.push_back(object.uri);
      files.bytes += object.bytes;
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> found,
                   FilesOf(data_dir, pattern));
  for (const std::string& path : found) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (!error) files.bytes += bytes;
    files.paths.push_back(path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FoundFiles> FindFiles(const std::string& data_dir,
                                     absl::Span<const std::string> patterns,
                                     absl::string_view field) {
  if (patterns.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is not set"));
  }
  FoundFiles files;
  for (const std::string& pattern : patterns) {
    if (pattern.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(field, " is empty"));
    }
    RETURN_IF_ERROR(AddFilesOf(data_dir, pattern, files));
    if (files.paths.size() > kMaxFiles) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, ": ", files.paths.size(), " files, more than ", kMaxFiles));
    }
  }
  return files;
}

absl::Status CheckFoldersOfGrowingSet(const std::string& data_dir,
                                      absl::Span<const std::string> patterns) {
  for (const std::string& pattern : patterns) {
    // A topic is in no folder.
    if (IsTopicUri(pattern)) continue;
    if (IsUri(data_dir)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--data_dir=", data_dir,
                       ": object stores and web servers are not followed; "
                       "bring the files to a folder"));
    }
    const std::string fixed = FixedFolder(pattern);
    std::string folder = fixed.empty() ? data_dir : JoinedPath(data_dir, fixed);
    if (folder.empty()) folder = ".";
    struct stat about = {};
    const int error = stat(folder.c_str(), &about) == 0 ? 0 : errno;
    if (error != 0 && error != ENOENT && error != ENOTDIR) {
      return OpenError(folder, error);
    }
    if (error == 0 && S_ISDIR(about.st_mode)) continue;
    return absl::NotFoundError(absl::StrCat(
        "there is no folder ", OneLine(folder), ", where the files of ",
        OneLine(pattern), " are to come; is --data_dir=", data_dir,
        " right, and all that it needs mounted?"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> NamesOfGrowingSet(
    const std::string& data_dir, absl::Span<const std::string> patterns) {
  namespace fs = std::filesystem;
  RETURN_IF_ERROR(CheckFoldersOfGrowingSet(data_dir, patterns));
  const std::string front = (fs::path(data_dir) / "").string();
  std::vector<std::string> names;
  for (const std::string& pattern : patterns) {
    const fs::path path = fs::path(Escaped(data_dir)) / pattern;
    ASSIGN_OR_RETURN(const std::vector<std::string> found,
                     Glob(path.string(), kMaxEntriesOfGrowing));
    const bool is_relative =
        !data_dir.empty() && !fs::path(pattern).is_absolute();
    for (const std::string& name : found) {
      const bool has_front = is_relative && absl::StartsWith(name, front);
      names.push_back(has_front ? name.substr(front.size()) : name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace parasol
