#include "ml/input/object/copy_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);
constexpr size_t kMostNameBytes = 200;

std::string LockOf(const std::string& path) { return path + ".lock"; }

// True if the open file is the one at the path, which whoever had the lock
// before may have removed.
bool IsAt(const std::string& path, int descriptor) {
  struct stat open_file;
  struct stat named;
  return fstat(descriptor, &open_file) == 0 &&
         stat(path.c_str(), &named) == 0 && open_file.st_ino == named.st_ino &&
         open_file.st_dev == named.st_dev;
}

std::string NameOfProcess() {
  char host[kMostNameBytes] = {};
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("process ", getpid(), " on ", host);
}

std::string OwnerOf(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char name[kMostNameBytes] = {};
  const ssize_t n =
      file.is_open() ? pread(file.get(), name, sizeof(name), 0) : 0;
  return n > 0 ? ShownText({name, static_cast<size_t>(n)}, kMostNameBytes)
               : "another process";
}

// Returns when the file was written last, or a time before all others.
absl::Time WrittenAt(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 ? absl::TimeFromTimespec(about.st_mtim)
                                         : absl::InfinitePast();
}

}  // namespace

absl::StatusOr<std::optional<CopyLock>> CopyLock::TryTake(
    const std::string& path) {
  const std::string name = LockOf(path);
  while (true) {
    constexpr mode_t kOwnersOnly = 0600;
    Descriptor file(
        open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnersOnly));
    if (!file.is_open()) return absl::ErrnoToStatus(errno, name);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, name);
      return std::nullopt;
    }
    if (!IsAt(name, file.get())) continue;
    const std::string owner = NameOfProcess();
    // Only messages need it.
    if (pwrite(file.get(), owner.data(), owner.size(), 0) < 0) {
      LOG(WARNING) << name << " can't be written";
    }
    return CopyLock(name, std::move(file));
  }
}

absl::StatusOr<CopyLock> CopyLock::Take(const std::string& path,
                                        const Wait& wait) {
  absl::Time written = WrittenAt(path);
  absl::Time moved = wait.clock->Now();
  bool is_logged = false;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<CopyLock> taken, TryTake(path));
    if (taken.has_value()) return *std::move(taken);
    const std::string owner = OwnerOf(LockOf(path));
    if (!is_logged) LOG(INFO) << "waits for " << owner << ": " << wait.what;
    is_logged = true;
    const absl::Time now = wait.clock->Now();
    if (WrittenAt(path) != written) moved = now;
    written = WrittenAt(path);
    if (now - moved > wait.patience) {
      return absl::UnavailableError(absl::StrCat(
          wait.what, ": ", owner, " has not gone on for ",
          absl::FormatDuration(wait.patience), "; end it, or wait longer"));
    }
    wait.clock->Pause(kPause);
  }
}

CopyLock::~CopyLock() {
  // Before the lock is free: later it may be another's.
  if (descriptor_.is_open()) unlink(path_.c_str());
}

}  // namespace parasol
