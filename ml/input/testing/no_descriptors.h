#ifndef PARASOL_ML_INPUT_TESTING_NO_DESCRIPTORS_H_
#define PARASOL_ML_INPUT_TESTING_NO_DESCRIPTORS_H_

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace parasol {

// Leaves this process no descriptor for another file until it is destroyed.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_NO_DESCRIPTORS_H_
