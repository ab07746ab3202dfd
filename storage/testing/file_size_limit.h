#ifndef PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
#define PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_

#include <sys/resource.h>

#include <csignal>

#include "base/log.h"

namespace parasol {

// Limit of the size of files that this process writes, as a full disk is one;
// until Lift(), or the end of this object.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes)
      : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    Lift();
    std::signal(SIGXFSZ, signal_);
  }

  void Lift() { CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }

 private:
  void (*const signal_)(int);
  rlimit before_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
