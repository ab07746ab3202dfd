#ifndef PARASOL_STORAGE_TESTING_DISK_FAULTS_H_
#define PARASOL_STORAGE_TESTING_DISK_FAULTS_H_

#include <sys/types.h>

#include <cerrno>
#include <string>

// Faults of the disk, for tests. A test that depends on this library has its
// system calls answered by it.
namespace parasol {

// Makes every later fsync(2) and fdatasync(2) of `path` fail with `code`
// (errno); an empty path ends the faults. If the path ends with '*', of all
// files whose paths begin like it.
void FailFsyncOf(const std::string& path, int code = EIO);

// Ends this process with SIGKILL when its `count`-th fsync(2) or fdatasync(2)
// from now on begins; 0: it goes on.
void KillAtFsync(int count);

// Makes every later pread(2) of `path` from byte `first` on, or behind it, fail
// with `code` (errno); an empty path ends the faults.
void FailReadsOf(const std::string& path, int code, off_t first = 0);

// Makes every later link(2) of `path` to another name fail with `code` (errno);
// an empty path ends the faults.
void FailLinksOf(const std::string& path, int code);

// Makes every later rename(2) of `path` fail with `code` (errno); an empty path
// ends the faults.
void FailRenamesOf(const std::string& path, int code);

}  // namespace parasol

#endif  // PARASOL_STORAGE_TESTING_DISK_FAULTS_H_
