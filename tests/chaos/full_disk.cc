// A library for LD_PRELOAD that makes a folder's disk full: while the file
// $PARASOL_FULL_DISK is there, what is under $PARASOL_FULL_FOLDER can't be
// written, and files (but for mkstemp's), folders and links can't be made there
// (ENOSPC). What is there can be read, renamed and removed. The first call that
// is refused makes the file $PARASOL_FULL_DISK.met.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <string>

namespace {

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string LinkOf(const std::string& link) {
  char path[4096];
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, size) : std::string();
}

std::string PathOf(int fd) {
  return LinkOf("/proc/self/fd/" + std::to_string(fd));
}

// The path of what a call names, in `folder` unless it begins at the root, with
// no symbolic links in the way to it.
std::string PathAt(int folder, const char* name) {
  std::string path = name;
  if (name[0] != '/') {
    path = (folder == AT_FDCWD ? LinkOf("/proc/self/cwd") : PathOf(folder)) +
           "/" + path;
  }
  const size_t last = path.rfind('/');
  char* const parent = realpath(path.substr(0, last).c_str(), nullptr);
  if (parent != nullptr) path = parent + path.substr(last);
  free(parent);
  return path;
}

// Keeps errno.
bool IsFull() {
  const int before = errno;
  const char* const flag = std::getenv("PARASOL_FULL_DISK");
  const bool is_full = flag != nullptr && access(flag, F_OK) == 0;
  errno = before;
  return is_full;
}

// Both paths without symbolic links.
bool IsIn(const std::string& path) {
  static const std::string folder = [] {
    const char* const named = std::getenv("PARASOL_FULL_FOLDER");
    char* const whole = named == nullptr ? nullptr : realpath(named, nullptr);
    const std::string found = whole == nullptr ? "" : whole;
    free(whole);
    return found;
  }();
  return !folder.empty() && path.rfind(folder + "/", 0) == 0;
}

// Leaves the mark, and errno as a call that needs room does.
void Refuse() {
  const std::string mark =
      std::string(std::getenv("PARASOL_FULL_DISK")) + ".met";
  syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark.c_str(),
                             O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  errno = ENOSPC;
}

// Calls the function, or fails as one does that needs room on the disk.
template <typename Call>
auto IfRoom(int fd, Call call) {
  if (!IsFull() || !IsIn(PathOf(fd))) return call();
  Refuse();
  return static_cast<decltype(call())>(-1);
}

template <typename Call>
int IfRoomAt(int folder, const char* name, Call call) {
  if (!IsFull() || !IsIn(PathAt(folder, name))) return call();
  Refuse();
  return -1;
}

int Open(const char* function, int folder, const char* name, int flags,
         mode_t mode) {
  const auto open = [=] {
    return Next<int(int, const char*, int, ...)>(function)(folder, name, flags,
                                                           mode);
  };
  const bool makes =
      (flags & O_CREAT) != 0 && faccessat(folder, name, F_OK, 0) != 0;
  return makes ? IfRoomAt(folder, name, open) : open();
}

mode_t ModeOf(int flags, va_list& more) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

}  // namespace

extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  return IfRoom(fd, [=] {
    return Next<ssize_t(int, const void*, size_t)>("write")(fd, bytes, size);
  });
}
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  return IfRoom(fd, [=] {
    return Next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(fd, bytes,
                                                                    size, at);
  });
}
extern "C" ssize_t pwrite64(int fd, const void* bytes, size_t size,
                            off64_t at) {
  return pwrite(fd, bytes, size, at);
}
extern "C" ssize_t writev(int fd, const iovec* parts, int count) {
  return IfRoom(fd, [=] {
    return Next<ssize_t(int, const iovec*, int)>("writev")(fd, parts, count);
  });
}
extern "C" int fallocate(int fd, int mode, off_t from, off_t size) {
  return IfRoom(fd, [=] {
    return Next<int(int, int, off_t, off_t)>("fallocate")(fd, mode, from, size);
  });
}
extern "C" int fallocate64(int fd, int mode, off64_t from, off64_t size) {
  return fallocate(fd, mode, from, size);
}

extern "C" int open(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = ModeOf(flags, more);
  va_end(more);
  return Open("openat", AT_FDCWD, name, flags, mode);
}
extern "C" int open64(const char* name, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = ModeOf(flags, more);
  va_end(more);
  return Open("openat", AT_FDCWD, name, flags, mode);
}
extern "C" int mkdir(const char* name, mode_t mode) {
  return IfRoomAt(AT_FDCWD, name, [=] {
    return Next<int(const char*, mode_t)>("mkdir")(name, mode);
  });
}
extern "C" int link(const char* from, const char* to) {
  return IfRoomAt(AT_FDCWD, to, [=] {
    return Next<int(const char*, const char*)>("link")(from, to);
  });
}
