#include "storage/testing/disk_faults.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <csignal>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

namespace parasol {
namespace {

struct Faults {
  absl::Mutex mu;
  std::string fsync_path ABSL_GUARDED_BY(mu);
  int fsync_code ABSL_GUARDED_BY(mu) = 0;
  int fsyncs_until_kill ABSL_GUARDED_BY(mu) = 0;
  std::string read_path ABSL_GUARDED_BY(mu);
  int read_code ABSL_GUARDED_BY(mu) = 0;
  off_t first_unread ABSL_GUARDED_BY(mu) = 0;
  std::string link_path ABSL_GUARDED_BY(mu);
  int link_code ABSL_GUARDED_BY(mu) = 0;
  std::string rename_path ABSL_GUARDED_BY(mu);
  int rename_code ABSL_GUARDED_BY(mu) = 0;
};

Faults& TheFaults() {
  static auto* const faults = new Faults;
  return *faults;
}

bool IsOpenAt(int descriptor, const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", descriptor).c_str(), target,
               sizeof(target));
  if (size <= 0) return false;
  const absl::string_view open(target, size);
  if (absl::EndsWith(path, "*")) {
    return absl::StartsWith(open, absl::StripSuffix(path, "*"));
  }
  return open == path;
}

}  // namespace

void FailFsyncOf(const std::string& path, int code) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  faults.fsync_path = path;
  faults.fsync_code = code;
}

void KillAtFsync(int count) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  faults.fsyncs_until_kill = count;
}

void FailReadsOf(const std::string& path, int code, off_t first) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  faults.read_path = path;
  faults.read_code = code;
  faults.first_unread = first;
}

void FailLinksOf(const std::string& path, int code) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  faults.link_path = path;
  faults.link_code = code;
}

void FailRenamesOf(const std::string& path, int code) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  faults.rename_path = path;
  faults.rename_code = code;
}

// The errno with which a call on the descriptor fails; 0 if it does not.
int FsyncFault(int descriptor) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  if (faults.fsyncs_until_kill > 0 && --faults.fsyncs_until_kill == 0) {
    raise(SIGKILL);
  }
  return !faults.fsync_path.empty() && IsOpenAt(descriptor, faults.fsync_path)
             ? faults.fsync_code
             : 0;
}

int ReadFault(int descriptor, off_t offset) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  return !faults.read_path.empty() && offset >= faults.first_unread &&
                 IsOpenAt(descriptor, faults.read_path)
             ? faults.read_code
             : 0;
}

int LinkFault(const char* path) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  return !faults.link_path.empty() && faults.link_path == path
             ? faults.link_code
             : 0;
}

int RenameFault(const char* path) {
  Faults& faults = TheFaults();
  absl::MutexLock lock(&faults.mu);
  return !faults.rename_path.empty() && faults.rename_path == path
             ? faults.rename_code
             : 0;
}

}  // namespace parasol

// In place of the C library's.
extern "C" int fsync(int descriptor) {
  const int fault = parasol::FsyncFault(descriptor);
  if (fault == 0) return static_cast<int>(syscall(SYS_fsync, descriptor));
  errno = fault;
  return -1;
}

extern "C" int fdatasync(int descriptor) {
  const int fault = parasol::FsyncFault(descriptor);
  if (fault == 0) return static_cast<int>(syscall(SYS_fdatasync, descriptor));
  errno = fault;
  return -1;
}

extern "C" ssize_t pread(int descriptor, void* out, size_t count,
                         off_t offset) {
  const int fault = parasol::ReadFault(descriptor, offset);
  if (fault == 0) return syscall(SYS_pread64, descriptor, out, count, offset);
  errno = fault;
  return -1;
}

extern "C" int link(const char* from, const char* to) noexcept {
  const int fault = parasol::LinkFault(from);
  if (fault == 0) {
    return static_cast<int>(
        syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
  }
  errno = fault;
  return -1;
}

extern "C" int rename(const char* from, const char* to) noexcept {
  const int fault = parasol::RenameFault(from);
  if (fault == 0) {
    return static_cast<int>(
        syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  }
  errno = fault;
  return -1;
}
