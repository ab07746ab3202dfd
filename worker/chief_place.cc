#include "worker/chief_place.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {

// A Unix socket with an abstract name: the kernel gives a name to one socket of
// a network namespace, as it does a port, and frees it with the process.
absl::StatusOr<ChiefPlace> ChiefPlace::Take(const std::string& task,
                                            const std::string& address) {
  Descriptor place(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  // The end of a long host's name tells more than its beginning.
  constexpr size_t kMaxBytes = sizeof(name.sun_path) - 1;
  std::string text = absl::StrCat("parasol.chief.", task, ".", address);
  if (text.size() > kMaxBytes) text.erase(0, text.size() - kMaxBytes);
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  const socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + text.size();
  if (place.is_open() &&
      bind(place.get(), reinterpret_cast<const sockaddr*>(&name), size) == 0) {
    return ChiefPlace(std::move(place));
  }
  if (errno == EADDRINUSE) {
    return absl::InvalidArgumentError(absl::StrCat(
        task, " at ", address,
        ": another process of this task runs on this machine, with the chief "
        "beside it; stop it first, or give this one another address"));
  }
  // The port says so, later.
  LOG(WARNING) << "can't tell whether another process of " << task
               << " runs on this machine: " << std::strerror(errno);
  return ChiefPlace(Descriptor());
}

}  // namespace parasol
