#include "cluster/rpc/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// The first page holds a random number that only the offer tells: who was not
// offered this memory can't make anybody open it.
constexpr size_t kPage = 4096;
using Secret = std::array<char, 16>;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// Constants of the kernel's headers, which may be younger than the library's.
constexpr unsigned kNoExecSeal = 0x0008;  // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int kPopulateWrite = 23;        // MADV_POPULATE_WRITE, Linux 5.14

constexpr char kName[] = "parasol-tensors";

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat("shared memory: ", what, ": ", std::strerror(errno)));
}

absl::Status BadOffer(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("shared memory: ", what));
}

// Returns the name of the processes that a number under /proc refers to here:
// one machine since its start, one pid namespace.
absl::StatusOr<std::string> ProcessSpace() {
  const std::string boot = BootId();
  if (boot.empty()) {
    return absl::UnavailableError(
        "/proc/sys/kernel/random/boot_id: can't be read; is /proc mounted?");
  }
  std::array<char, 64> link;
  const ssize_t size = readlink("/proc/self/ns/pid", link.data(), link.size());
  if (size < 0) return SystemError("/proc/self/ns/pid");
  return absl::StrCat(
      boot, "/", absl::string_view(link.data(), static_cast<size_t>(size)));
}

// What a descriptor is shows its link, without touching it: to open or even to
// ask about a device or a file of a remote system may do anything.
absl::Status CheckMemoryFile(const std::string& path) {
  std::array<char, 64> link;
  const ssize_t size = readlink(path.c_str(), link.data(), link.size());
  if (size < 0) return SystemError(path);
  const absl::string_view target(link.data(), static_cast<size_t>(size));
  if (absl::StartsWith(target, absl::StrCat("/memfd:", kName, " "))) {
    return absl::OkStatus();
  }
  return BadOffer(
      absl::StrCat(path, " is not memory that a worker has offered"));
}

absl::StatusOr<Descriptor> OpenMemory(const std::string& path, size_t size) {
  RETURN_IF_ERROR(CheckMemoryFile(path));
  Descriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.is_open()) return SystemError(path);
  struct stat file;
  if (fstat(memory.get(), &file) != 0) return SystemError(path);
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (file.st_size != static_cast<off_t>(size) || seals < 0 ||
      (seals & kSeals) != kSeals) {
    return BadOffer(
        absl::StrCat(path, " is not sealed memory of ", size, " bytes"));
  }
  return memory;
}

// Sealing it against being executed is what some systems insist on, and older
// ones don't know.
int NewMemory() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int sealed = memfd_create(kName, kFlags | kNoExecSeal);
  if (sealed >= 0 || errno != EINVAL) return sealed;
  return memfd_create(kName, kFlags);
}

// Beyond the limit a file that grows ends its process.
absl::Status CheckFileSizeLimit(size_t size) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return SystemError("RLIMIT_FSIZE");
  if (limit.rlim_cur >= size) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("shared memory: needs a file of ", size,
                   " bytes, but RLIMIT_FSIZE is ", limit.rlim_cur));
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Create(
    size_t size) {
  ASSIGN_OR_RETURN(const std::string space, ProcessSpace());
  Secret secret;
  if (getrandom(secret.data(), secret.size(), 0) !=
      static_cast<ssize_t>(secret.size())) {
    return SystemError("getrandom");
  }
  RETURN_IF_ERROR(CheckFileSizeLimit(kPage + size));
  Descriptor descriptor(NewMemory());
  if (!descriptor.is_open()) return SystemError("memfd_create");
  if (ftruncate(descriptor.get(), static_cast<off_t>(kPage + size)) != 0 ||
      fcntl(descriptor.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    return SystemError("ftruncate");
  }
  std::shared_ptr<SharedMemory> memory(new SharedMemory(size));
  RETURN_IF_ERROR(memory->Map(descriptor.get()));
  std::memcpy(memory->mapping_, secret.data(), secret.size());
  memory->descriptor_ = descriptor.Release();
  memory->offer_ =
      absl::StrCat(space, " ", getpid(), " ", memory->descriptor_, " ",
                   absl::BytesToHexString({secret.data(), secret.size()}));
  return memory;
}

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Open(
    absl::string_view offer, size_t size) {
  const std::vector<absl::string_view> words = absl::StrSplit(offer, ' ');
  int pid;
  int number;
  if (words.size() != 4 || !absl::SimpleAtoi(words[1], &pid) ||
      !absl::SimpleAtoi(words[2], &number) || pid <= 0 || number < 0 ||
      words[3].size() != 2 * std::tuple_size_v<Secret> ||
      !std::all_of(words[3].begin(), words[3].end(), absl::ascii_isxdigit)) {
    return BadOffer("the worker's offer can't be parsed");
  }
  ASSIGN_OR_RETURN(const std::string space, ProcessSpace());
  if (words[0] != space) {
    return absl::NotFoundError(
        "shared memory: the worker that offers it runs on another machine or "
        "in another pid namespace");
  }
  ASSIGN_OR_RETURN(
      const Descriptor descriptor,
      OpenMemory(absl::StrCat("/proc/", pid, "/fd/", number), kPage + size));
  std::shared_ptr<SharedMemory> memory(new SharedMemory(size));
  RETURN_IF_ERROR(memory->Map(descriptor.get()));
  const std::string secret = absl::HexStringToBytes(words[3]);
  if (std::memcmp(memory->mapping_, secret.data(), secret.size()) != 0) {
    return BadOffer(
        "the memory is not the one that the worker offered: its secret "
        "differs");
  }
  return memory;
}

absl::Status SharedMemory::Map(int descriptor) {
  void* const mapping = mmap(nullptr, kPage + size_, PROT_READ | PROT_WRITE,
                             MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED)
    return SystemError(absl::StrCat("mmap of ", size_));
  mapping_ = static_cast<std::byte*>(mapping);
  // Tensors in flight tell nothing about a crash, and are many.
  madvise(mapping, kPage + size_, MADV_DONTDUMP);
  data_ = mapping_ + kPage;
  return absl::OkStatus();
}

bool SharedMemory::Populate(size_t offset, size_t size) {
  // A kernel that does not know it takes pages as they are written.
  return madvise(data_ + offset, size, kPopulateWrite) == 0 || errno == EINVAL;
}

void SharedMemory::Close() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

SharedMemory::~SharedMemory() {
  Close();
  if (mapping_ != nullptr) munmap(mapping_, kPage + size_);
}

}  // namespace parasol
