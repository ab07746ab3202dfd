#include "cluster/cluster_spec/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// A DNS name has at most 253 characters; this leaves room for an IPv6 zone.
constexpr size_t kMaxHostBytes = 300;

absl::StatusOr<int> ParsePort(absl::string_view port) {
  int number = 0;
  if (port.empty() ||
      !std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(port, &number) || number < 1 || number > 65535) {
    return absl::InvalidArgumentError("the port is not in 1-65535");
  }
  return number;
}

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
}

// "fe80::1%eth0", without the brackets.
std::optional<std::string> CanonicalIpv6(absl::string_view host) {
  const size_t zone_start = std::min(host.find('%'), host.size());
  const absl::string_view zone = host.substr(zone_start);
  if (zone.size() == 1 || !std::all_of(zone.begin() + (zone.empty() ? 0 : 1),
                                       zone.end(), IsNameCharacter)) {
    return std::nullopt;
  }
  in6_addr binary;
  if (inet_pton(AF_INET6, std::string(host.substr(0, zone_start)).c_str(),
                &binary) != 1) {
    return std::nullopt;
  }
  char text[INET6_ADDRSTRLEN];
  if (inet_ntop(AF_INET6, &binary, text, sizeof(text)) == nullptr) {
    return std::nullopt;
  }
  return absl::StrCat(text, zone);
}

absl::StatusOr<std::string> CanonicalHost(absl::string_view host) {
  if (host.empty()) return absl::InvalidArgumentError("the host is missing");
  if (host.front() == '[' && host.back() == ']' && host.size() > 2) {
    const std::optional<std::string> ipv6 =
        CanonicalIpv6(host.substr(1, host.size() - 2));
    if (ipv6.has_value()) return absl::StrCat("[", *ipv6, "]");
    return absl::InvalidArgumentError(
        "the brackets do not hold an IPv6 address");
  }
  if (host.find(':') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "more than one ':' (an IPv6 address needs brackets)");
  }
  if (host.size() > kMaxHostBytes ||
      !std::all_of(host.begin(), host.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        "the host is neither a DNS name nor an IP address");
  }
  return absl::AsciiStrToLower(host);
}

absl::StatusOr<std::string> Canonical(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || address.back() == ']') {
    return absl::InvalidArgumentError("the port is missing");
  }
  ASSIGN_OR_RETURN(const std::string host,
                   CanonicalHost(address.substr(0, colon)));
  ASSIGN_OR_RETURN(const int port, ParsePort(address.substr(colon + 1)));
  return absl::StrCat(host, ":", port);
}

}  // namespace

absl::StatusOr<std::string> CanonicalAddress(absl::string_view address) {
  ASSIGN_OR_RETURN(std::string canonical, Canonical(address),
                   _ << "\"" << absl::CHexEscape(address.substr(0, 100))
                     << "\" is not host:port");
  return canonical;
}

bool IsLoopback(absl::string_view address) {
  const std::string host(address.substr(0, address.rfind(':')));
  in_addr ipv4;
  return absl::EqualsIgnoreCase(host, "localhost") || host == "[::1]" ||
         (inet_pton(AF_INET, host.c_str(), &ipv4) == 1 &&
          ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET);
}

}  // namespace parasol
