// A library for LD_PRELOAD that makes a folder's disk full: while the file
// $PARASOL_FULL_DISK is there, nothing can be written or made under
// $PARASOL_FULL_FOLDER (ENOSPC). What is there can be read and removed.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
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

// The path of what a call names: beside `folder` unless it begins at the root.
std::string PathAt(int folder, const char* name) {
  if (name[0] == '/') return name;
  return (folder == AT_FDCWD ? LinkOf("/proc/self/cwd") : PathOf(folder)) +
         "/" + name;
}

// Keeps errno.
bool IsFull() {
  const int before = errno;
  const char* const flag = std::getenv("PARASOL_FULL_DISK");
  const bool is_full = flag != nullptr && access(flag, F_OK) == 0;
  errno = before;
  return is_full;
}

bool IsIn(const std::string& path) {
  const char* const folder = std::getenv("PARASOL_FULL_FOLDER");
  return folder != nullptr && path.rfind(std::string(folder) + "/", 0) == 0;
}

// Calls the function, or fails as one does that needs room on the disk.
template <typename Call>
auto IfRoom(int fd, Call call) {
  if (!IsFull() || !IsIn(PathOf(fd))) return call();
  errno = ENOSPC;
  return static_cast<decltype(call())>(-1);
}

template <typename Call>
int IfRoomAt(int folder, const char* name, Call call) {
  if (!IsFull() || !IsIn(PathAt(folder, name))) return call();
  errno = ENOSPC;
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
