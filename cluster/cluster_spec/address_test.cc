#include "cluster/cluster_spec/address.h"

#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(AddressTest, DifferentSpellingsOfOneAddressAreTheSame) {
  struct Case {
    std::string address;
    std::string canonical;
  };
  const Case cases[] = {
      {"h0:2222", "h0:2222"},
      {"H0:02222", "h0:2222"},
      {"mnist-worker-0.ml.svc.cluster.local:1",
       "mnist-worker-0.ml.svc.cluster.local:1"},
      {"compose_ps_1:65535", "compose_ps_1:65535"},
      {"10.0.0.1:80", "10.0.0.1:80"},
      {"[::1]:2222", "[::1]:2222"},
      {"[2001:DB8:0:0:0:0:0:1]:2222", "[2001:db8::1]:2222"},
      {"[fe80::1%eth0]:2222", "[fe80::1%eth0]:2222"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(CanonicalAddress(c.address), IsOkAndHolds(c.canonical));
  }
}

TEST(AddressTest, WhatIsNoAddressIsNamedWithTheReason) {
  struct Case {
    std::string address;
    std::string reason;
  };
  const Case cases[] = {
      {"", "the port is missing"},
      {"h1", "the port is missing"},
      {"[::1]", "the port is missing"},
      {"h1:", "port is not in"},
      {"h1:0", "port is not in"},
      {"h1:65536", "port is not in"},
      {"h1:99999999999999999999", "port is not in"},
      {"h1:-1", "port is not in"},
      {"h1:+1", "port is not in"},
      {"h1: 80", "port is not in"},
      {"h1:80 ", "port is not in"},
      {"h1:http", "port is not in"},
      {":2222", "the host is missing"},
      {"::1:2222", "needs brackets"},
      {"h1:1:2222", "needs brackets"},
      {"[]:2222", "neither a DNS name"},
      {"[h1]:2222", "do not hold an IPv6"},
      {"[1.2.3.4]:2222", "do not hold an IPv6"},
      {"[::1%]:2222", "do not hold an IPv6"},
      {"[::1:2222", "needs brackets"},
      {"h 1:2222", "neither a DNS name"},
      {"h1/x:2222", "neither a DNS name"},
      {"grpc://h1:2222", "needs brackets"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(CanonicalAddress(c.address),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"" + c.address + "\""),
                               HasSubstr(c.reason))));
  }
}

TEST(AddressTest, ControlCharactersAreEscapedInTheError) {
  EXPECT_THAT(CanonicalAddress("h\n1:2222"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"h\\n1:2222\"")));
}

TEST(IsLoopbackTest, AddressesOfThisMachineAloneAreTold) {
  for (const std::string address : {"localhost:1", "LocalHost:1", "127.0.0.1:1",
                                    "127.200.3.4:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const std::string address :
       {"", ":1", "0.0.0.0:1", "[::]:1", "10.0.0.7:1", "127.evil.com:1",
        "localhost.evil.com:1", "[::127.0.0.1]:1", "[fe80::1]:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

}  // namespace
}  // namespace parasol
