#include "cluster/payload_lane/pacing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <string>

#include "base/descriptor.h"
#include "base/status_matchers.h"
#include "cluster/payload_lane/listening_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::Not;
using ::testing::StartsWith;

sockaddr_storage AddressOf(const std::string& ip, int port = 9) {
  sockaddr_storage address = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, ip.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, ip.c_str(), &v6.sin6_addr), 1);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
  }
  return address;
}

TEST(PacingTest, AMachineKnowsItsOwnAddresses) {
  EXPECT_TRUE(IsWithinMachine(AddressOf("127.0.0.1")));
  // Addresses for documentation: nobody has them.
  EXPECT_FALSE(IsWithinMachine(AddressOf("192.0.2.1")));
  EXPECT_FALSE(IsWithinMachine(AddressOf("2001:db8::1")));
  EXPECT_FALSE(IsWithinMachine(sockaddr_storage()));
}

// Whatever the system's algorithm is: to try it with bbr,
// sysctl net.ipv4.tcp_congestion_control=bbr.
TEST(PacingTest, ConnectionsWithinAMachineAreNotPaced) {
  ASSERT_OK_AND_ASSIGN(const Descriptor listening,
                       ListenOn("127.0.0.1", 0, "a test"));
  const sockaddr_storage address = AddressOf("127.0.0.1", PortOf(listening));
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  AvoidPacing(socket.get(), address);
  ASSERT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address),
                    sizeof(sockaddr_in)),
            0);
  const Descriptor accepted(accept(listening.get(), nullptr, nullptr));
  PaceIfRemote(accepted.get());
  for (const int fd : {socket.get(), accepted.get()}) {
    const std::string algorithm = CongestionControlOf(fd);
    EXPECT_THAT(algorithm, Not(StartsWith("bbr")));
    if (SystemCongestionControl().rfind("bbr", 0) != 0) {
      EXPECT_EQ(algorithm, SystemCongestionControl());
    }
  }
}

TEST(PacingTest, AConnectionElsewhereKeepsTheSystemsAlgorithm) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  AvoidPacing(socket.get(), AddressOf("192.0.2.1"));
  EXPECT_EQ(CongestionControlOf(socket.get()), SystemCongestionControl());
}

}  // namespace
}  // namespace parasol
