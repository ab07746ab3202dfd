#include "cluster/payload_lane/payload_offer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
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

PayloadOffer PayloadOffer::Draw(int port) {
  PayloadOffer offer = {.port = port, .secret = DrawNonce()};
  const std::string id = DrawNonce();
  std::memcpy(offer.id.data(), id.data(), sizeof(offer.id));
  return offer;
}

std::string PayloadOffer::ToString() const {
  return absl::StrCat(port, " ",
                      absl::BytesToHexString(absl::string_view(
                          reinterpret_cast<const char*>(id.data()), id.size())),
                      " ", absl::BytesToHexString(secret));
}

absl::StatusOr<PayloadOffer> PayloadOffer::Parse(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  const auto is_hex = [](absl::string_view word) {
    return word.size() == 2 * kNonceBytes &&
           std::all_of(word.begin(), word.end(), absl::ascii_isxdigit);
  };
  PayloadOffer offer;
  const bool is_offer = words.size() == 3 &&
                        absl::SimpleAtoi(words[0], &offer.port) &&
                        offer.port > 0 && offer.port <= 65535 &&
                        is_hex(words[1]) && is_hex(words[2]);
  if (!is_offer) {
    // It may have a secret.
    return absl::InvalidArgumentError("lane: the ps's answer is no offer");
  }
  const std::string id = absl::HexStringToBytes(words[1]);
  std::memcpy(offer.id.data(), id.data(), sizeof(offer.id));
  offer.secret = absl::HexStringToBytes(words[2]);
  return offer;
}

std::string MakePayloadHello(const PayloadId& id, absl::string_view nonce) {
  return absl::StrCat(
      kPayloadHello,
      absl::string_view(reinterpret_cast<const char*>(id.data()), id.size()),
      nonce);
}

PayloadId IdInPayloadHello(absl::string_view hello) {
  CHECK_EQ(hello.size(), kPayloadHelloBytes);
  PayloadId id;
  std::memcpy(id.data(), hello.data() + kPayloadHello.size(), id.size());
  return id;
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
