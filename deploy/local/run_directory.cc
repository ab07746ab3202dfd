#include "deploy/local/run_directory.h"

#include <errno.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <regex>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "storage/directory_lock.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

struct Run {
  fs::file_time_type changed;
  std::string path;
  bool operator>(const Run& other) const {
    return std::tie(changed, path) > std::tie(other.changed, other.path);
  }
};

// A checkpoint that comes or goes changes its directory.
std::vector<Run> NewestFirst(const std::string& root) {
  static const std::regex name("run-[0-9]{8}-[0-9]{6}-[A-Za-z0-9]{6}");
  std::vector<Run> runs;
  std::error_code error;
  fs::directory_iterator there(root, error);
  for (; !error && there != fs::directory_iterator(); there.increment(error)) {
    std::error_code gone;  // others remove runs, too
    if (there->is_symlink(gone) || !there->is_directory(gone) ||
        !std::regex_match(there->path().filename().string(), name)) {
      continue;
    }
    const fs::file_time_type changed = there->last_write_time(gone);
    if (!gone) runs.push_back({changed, there->path().string()});
  }
  std::sort(runs.begin(), runs.end(), std::greater<>());
  return runs;
}

}  // namespace

std::string RunsRoot(const std::string& xdg_data_home,
                     const std::string& home) {
  // A relative XDG_DATA_HOME is to be ignored, as its specification says.
  if (fs::path(xdg_data_home).is_absolute()) {
    return (fs::path(xdg_data_home) / "parasol" / "runs").string();
  }
  if (!fs::path(home).is_absolute()) return "";
  return (fs::path(home) / ".local" / "share" / "parasol" / "runs").string();
}

absl::StatusOr<std::string> MakeRunDirectory(const std::string& root,
                                             absl::Time now) {
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return FileError(error.value(), "make", root);
  std::string path = absl::StrCat(
      root, "/run-",
      absl::FormatTime("%Y%m%d-%H%M%S", now, absl::UTCTimeZone()), "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return FileError(errno, "make", path);
  return path;
}

size_t RemoveOldRuns(const std::string& root) {
  const std::vector<Run> runs = NewestFirst(root);
  size_t removed = 0;
  for (size_t i = kKeptRuns; i < runs.size(); ++i) {
    const std::optional<DirectoryLock> lock =
        DirectoryLock::TryExclude(runs[i].path);
    if (!lock.has_value()) continue;
    const absl::Status status = RemoveTree(runs[i].path);
    if (status.ok()) ++removed;
    if (!status.ok()) LOG(WARNING) << "old run: " << status.message();
  }
  return removed;
}

}  // namespace parasol
