#include "cluster/payload_lane/payload_offer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "cluster/rpc/keepalive.h"

namespace parasol {

std::string PayloadOffer::ToString() const {
  return absl::StrCat(
      port, " ",
      absl::BytesToHexString(absl::string_view(
          reinterpret_cast<const char*>(secret.data()), secret.size())));
}

absl::StatusOr<PayloadOffer> PayloadOffer::Parse(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  PayloadOffer offer;
  const bool is_offer =
      words.size() == 2 && absl::SimpleAtoi(words[0], &offer.port) &&
      offer.port > 0 && offer.port <= 65535 &&
      words[1].size() == 2 * offer.secret.size() &&
      std::all_of(words[1].begin(), words[1].end(), absl::ascii_isxdigit);
  if (!is_offer) {
    return absl::InvalidArgumentError(
        absl::StrCat("lane: \"", absl::CHexEscape(text), "\" is no offer"));
  }
  const std::string bytes = absl::HexStringToBytes(words[1]);
  std::memcpy(offer.secret.data(), bytes.data(), bytes.size());
  return offer;
}

PayloadSecret DrawPayloadSecret() {
  PayloadSecret secret;
  // So few bytes come whole, and from a generator that is ready.
  CHECK(getrandom(secret.data(), secret.size(), 0) ==
        static_cast<ssize_t>(secret.size()));
  return secret;
}

absl::Status SetPayloadSocketOptions(int fd) {
  const int silence = absl::ToInt64Seconds(kKeepaliveTime);
  const int probes = 2;
  const int between = absl::ToInt64Seconds(kKeepaliveTimeout) / probes;
  const int unacknowledged =
      absl::ToInt64Milliseconds(kKeepaliveTime + kKeepaliveTimeout);
  const int on = 1;
  const struct {
    int level;
    int name;
    int value;
  } options[] = {{IPPROTO_TCP, TCP_NODELAY, on},
                 {SOL_SOCKET, SO_KEEPALIVE, on},
                 {IPPROTO_TCP, TCP_KEEPIDLE, silence},
                 {IPPROTO_TCP, TCP_KEEPINTVL, between},
                 {IPPROTO_TCP, TCP_KEEPCNT, probes},
                 {IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged}};
  for (const auto& option : options) {
    if (setsockopt(fd, option.level, option.name, &option.value,
                   sizeof(option.value)) != 0) {
      return absl::UnavailableError(
          absl::StrCat("lane: setsockopt: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol
