#include "cluster/trust/token_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "cluster/trust/job_token.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

absl::Status FolderError(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", why,
                   "; this run's token needs a folder of this user's: set "
                   "HOME"));
}

std::string PathIn(const std::string& folder, absl::string_view address) {
  return absl::StrCat(folder, "/", absl::StrReplaceAll(address, {{"/", "_"}}),
                      ".token");
}

// Returns true if it is a folder of this user that nobody else can look into.
bool IsPrivate(const std::string& folder) {
  struct stat found;
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == geteuid() && (found.st_mode & 077) == 0;
}

// Makes the folder one that nobody else can look into.
absl::Status MakePrivate(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (error) return FolderError(folder, error.message());
  struct stat found;
  if ((mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) ||
      lstat(folder.c_str(), &found) != 0) {
    return FolderError(folder, std::strerror(errno));
  }
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid()) {
    return FolderError(folder, "is not a folder of this user's");
  }
  if ((found.st_mode & 077) != 0 && chmod(folder.c_str(), 0700) != 0) {
    return FolderError(folder, std::strerror(errno));
  }
  return absl::OkStatus();
}

// Locks an open file. Returns false if another process has; where a file system
// has no locks nobody does.
bool Lock(const Descriptor& file) {
  return flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace

std::vector<std::string> TokenFolders(const std::string& xdg_data_home,
                                      const std::string& home,
                                      unsigned int user) {
  std::vector<std::string> folders;
  // A relative XDG_DATA_HOME is to be ignored, as its specification says.
  if (fs::path(xdg_data_home).is_absolute()) {
    folders.push_back(absl::StrCat(xdg_data_home, "/parasol/tokens"));
  } else if (fs::path(home).is_absolute()) {
    folders.push_back(absl::StrCat(home, "/.local/share/parasol/tokens"));
  }
  folders.push_back(absl::StrCat("/tmp/parasol-tokens-", user));
  return folders;
}

absl::StatusOr<StoredToken> StoredToken::Draw(
    const std::vector<std::string>& folders, absl::string_view chief_address) {
  absl::Status last;
  for (const std::string& folder : folders) {
    absl::StatusOr<StoredToken> token = DrawIn(folder, chief_address);
    if (token.ok()) return token;
    last = token.status();
    if (absl::IsAlreadyExists(last)) {
      return absl::InvalidArgumentError(last.message());
    }
  }
  return last;
}

absl::StatusOr<StoredToken> StoredToken::DrawIn(
    const std::string& folder, absl::string_view chief_address) {
  RETURN_IF_ERROR(MakePrivate(folder));
  const std::string path = PathIn(folder, chief_address);
  // One draws at a time; another one needs no longer than this.
  const Descriptor turn(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (turn.is_open()) flock(turn.get(), LOCK_EX);
  const Descriptor former(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (former.is_open() && !Lock(former)) {
    return absl::AlreadyExistsError(
        absl::StrCat("a run of this user's has its chief at ", chief_address,
                     ", too: end it, or give this one another address (", path,
                     " is its token)"));
  }
  const std::string text = JobToken::Draw();
  // Nobody sees half of it, and a former file's mode does not matter.
  const std::string fresh = absl::StrCat(path, ".", getpid());
  unlink(fresh.c_str());
  Descriptor file(open(
      fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open() || !Lock(file) ||
      write(file.get(), text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    return FolderError(path, std::strerror(errno));
  }
  return StoredToken(path, text, std::move(file));
}

StoredToken::~StoredToken() {
  if (!path_.empty()) unlink(path_.c_str());
}

std::optional<std::string> FindToken(const std::vector<std::string>& folders,
                                     absl::string_view chief_address) {
  for (const std::string& folder : folders) {
    // Anybody may have made a folder of this name in /tmp.
    if (!IsPrivate(folder)) continue;
    const std::string path = PathIn(folder, chief_address);
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace parasol
