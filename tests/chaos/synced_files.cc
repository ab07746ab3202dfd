// A library for LD_PRELOAD that notes what a process has made durable: for each
// fsync and fdatasync of a file its size before, for one of a directory its
// entries. tests/chaos/power_cut.py takes files back to it, as a loss of power
// would.
//
// Appends lines to $PARASOL_SYNCED_FILES:
//   F inode size path
//   D inode path       and then, for each entry:
//   E inode name

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
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
void Append(const std::string& note) {
  const char* const name = std::getenv("PARASOL_SYNCED_FILES");
  if (name == nullptr || note.empty()) return;
  const int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (write(fd, note.data(), note.size()) < 0) std::perror(name);
  close(fd);
}

int Synced(const char* function, int fd) {
  using Sync = int (*)(int);
  const Sync sync = reinterpret_cast<Sync>(dlsym(RTLD_NEXT, function));
  const std::string note = NoteOf(fd);
  const int result = sync(fd);
  if (result == 0) Append(note);
  return result;
}

}  // namespace

extern "C" int fsync(int fd) { return Synced("fsync", fd); }
extern "C" int fdatasync(int fd) { return Synced("fdatasync", fd); }
