// A library for LD_PRELOAD that notes what a process has made durable: for each
// fsync and fdatasync of a file its size before, for one of a directory its
// entries; and which files and directories are gone, as others may have their
// inodes then. tests/chaos/power_cut.py takes files back to it, as a loss of
// power would.
//
// Appends lines to $PARASOL_SYNCED_FILES:
//   F inode size path
//   D inode path       and then, for each entry:
//   E inode name
//   U inode path       for one that is gone

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace {

std::string PathOf(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, size) : std::string();
}

std::string EntriesOf(const std::string& path) {
  std::string text;
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) return text;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    text += "E " + std::to_string(entry->d_ino) + " " + name + "\n";
  }
  closedir(directory);
  return text;
}

// The line about a file or directory as it is now.
std::string NoteOf(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return "";
  const std::string path = PathOf(fd);
  const std::string inode = std::to_string(status.st_ino);
  if (S_ISDIR(status.st_mode)) {
    return "D " + inode + " " + path + "\n" + EntriesOf(path);
  }
  return "F " + inode + " " + std::to_string(status.st_size) + " " + path +
         "\n";
}

// One write: notes of several processes do not mix.
bool IsRemoved(int fd) {
  struct stat status;
  return fstat(fd, &status) != 0 || status.st_nlink == 0;
}

// Appends a note of what was synced, by its descriptor, or is removed. What is
// removed may be noted already: nothing of it comes behind that.
void Append(const std::string& note, std::optional<int> synced) {
  const char* const name = std::getenv("PARASOL_SYNCED_FILES");
  if (name == nullptr || note.empty()) return;
  const int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  flock(fd, LOCK_EX);
  if (!synced.has_value() || !IsRemoved(*synced)) {
    if (write(fd, note.data(), note.size()) < 0) std::perror(name);
  }
  close(fd);
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int Synced(const char* function, int fd) {
  const auto sync = Next<int(int)>(function);
  const std::string note = NoteOf(fd);
  const int result = sync(fd);
  if (result == 0) Append(note, fd);
  return result;
}

// Calls what may remove the last name of what is at `path`. Its inode is nobody
// else's before it is noted: a descriptor is open.
template <typename Call>
int Removed(int folder, const char* path, Call call) {
  const int fd = openat(folder, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  const int result = call();
  const int error = errno;
  struct stat status;
  if (fd >= 0 && result == 0 && fstat(fd, &status) == 0 &&
      (status.st_nlink == 0 || S_ISDIR(status.st_mode))) {
    Append("U " + std::to_string(status.st_ino) + " " + path + "\n",
           std::nullopt);
  }
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

}  // namespace

extern "C" int fsync(int fd) { return Synced("fsync", fd); }
extern "C" int fdatasync(int fd) { return Synced("fdatasync", fd); }

extern "C" int unlink(const char* path) {
  return Removed(AT_FDCWD, path,
                 [=] { return Next<int(const char*)>("unlink")(path); });
}
extern "C" int rmdir(const char* path) {
  return Removed(AT_FDCWD, path,
                 [=] { return Next<int(const char*)>("rmdir")(path); });
}
extern "C" int remove(const char* path) {
  return Removed(AT_FDCWD, path,
                 [=] { return Next<int(const char*)>("remove")(path); });
}
extern "C" int unlinkat(int folder, const char* path, int flags) {
  return Removed(folder, path, [=] {
    return Next<int(int, const char*, int)>("unlinkat")(folder, path, flags);
  });
}
extern "C" int rename(const char* from, const char* to) {
  return Removed(AT_FDCWD, to, [=] {
    return Next<int(const char*, const char*)>("rename")(from, to);
  });
}
extern "C" int renameat(int from_folder, const char* from, int to_folder,
                        const char* to) {
  return Removed(to_folder, to, [=] {
    return Next<int(int, const char*, int, const char*)>("renameat")(
        from_folder, from, to_folder, to);
  });
}
