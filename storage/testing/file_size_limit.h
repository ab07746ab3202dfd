#ifndef PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
#define PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_

#include <sys/resource.h>

#include <csignal>

namespace parasol {

// Limit of the size of files that this process writes, as a full disk is one;
// until Lift(), or the end of this object.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { Lift(); }

  void Lift() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TESTING_FILE_SIZE_LIMIT_H_
