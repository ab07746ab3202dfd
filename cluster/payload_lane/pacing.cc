#include "cluster/payload_lane/pacing.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace parasol {
namespace {

// TCP_CA_NAME_MAX of the kernel.
constexpr size_t kMaxName = 16;

// Every kernel has the second one, and lets every process choose it.
constexpr absl::string_view kWithoutPacing[] = {"cubic", "reno"};

bool Set(int fd, absl::string_view algorithm) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm.data(),
                    algorithm.size()) == 0;
}

bool Paces(absl::string_view algorithm) {
  return absl::StartsWith(algorithm, "bbr");
}

void SetWithoutPacing(int fd) {
  if (!Paces(CongestionControlOf(fd))) return;
  for (const absl::string_view algorithm : kWithoutPacing) {
    if (Set(fd, algorithm)) return;
  }
}

// Returns the bytes of the IP address.
absl::string_view BytesOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& ip = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&ip), sizeof(ip)};
  }
  if (address.ss_family == AF_INET6) {
    const auto& ip = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    return {reinterpret_cast<const char*>(&ip), sizeof(ip)};
  }
  return {};
}

}  // namespace

std::string CongestionControlOf(int fd) {
  char name[kMaxName] = {};
  socklen_t size = sizeof(name);
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return "";
  return std::string(name, strnlen(name, size));
}

std::string SystemCongestionControl() {
  const Descriptor fresh(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fresh.is_open() ? CongestionControlOf(fresh.get()) : "";
}

// The source address of packets to an address of one's own is that address.
// Nothing is sent.
bool IsWithinMachine(const sockaddr_storage& peer) {
  const Descriptor datagrams(
      socket(peer.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const socklen_t size =
      peer.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  sockaddr_storage own = {};
  socklen_t own_size = sizeof(own);
  return datagrams.is_open() &&
         connect(datagrams.get(), reinterpret_cast<const sockaddr*>(&peer),
                 size) == 0 &&
         getsockname(datagrams.get(), reinterpret_cast<sockaddr*>(&own),
                     &own_size) == 0 &&
         !BytesOf(own).empty() && BytesOf(own) == BytesOf(peer);
}

void AvoidPacing(int fd, const sockaddr_storage& peer) {
  if (IsWithinMachine(peer)) SetWithoutPacing(fd);
}

void AcceptWithoutPacing(int listening) { SetWithoutPacing(listening); }

void PaceIfRemote(int accepted) {
  const std::string system = SystemCongestionControl();
  if (!Paces(system)) return;
  sockaddr_storage peer = {};
  socklen_t size = sizeof(peer);
  if (getpeername(accepted, reinterpret_cast<sockaddr*>(&peer), &size) != 0 ||
      IsWithinMachine(peer)) {
    return;
  }
  // It is allowed: it is the system's own choice.
  (void)Set(accepted, system);
}

}  // namespace parasol
