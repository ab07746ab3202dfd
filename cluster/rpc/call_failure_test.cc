#include "cluster/rpc/call_failure.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct FailureCase {
  grpc::StatusCode code;
  std::string message;
  std::string want;
};

std::string Connecting(const std::string& last) {
  return "failed to connect to all addresses; last error: " + last;
}

// gRPC 1.51 gives these messages with such a peer.
TEST(DescribeCallFailureTest, SaysWhatItMeansAndWhatToDo) {
  const grpc::StatusCode unavailable = grpc::StatusCode::UNAVAILABLE;
  const FailureCase cases[] = {
      {unavailable,
       Connecting("UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote "
                  "host: Connection refused"),
       "nothing listens there"},
      {unavailable,
       "DNS resolution failed for a.b:2: C-ares status is not ARES_SUCCESS "
       "qtype=AAAA name=a.b is_balancer=0: Domain name not found",
       "the name is not known here (Domain name not found)"},
      {unavailable,
       Connecting("UNAVAILABLE: ipv4:127.0.0.1:4: Failed parsing HTTP/2"),
       "another program answers"},
      {unavailable,
       Connecting("UNKNOWN: ipv4:127.0.0.1:4: connection attempt timed out "
                  "before receiving SETTINGS frame"),
       "accepted, and then nothing is said"},
      {unavailable, Connecting("UNAVAILABLE: ipv4:127.0.0.1:4: Socket closed"),
       "wants keys of its job (give --token_file"},
      {unavailable,
       Connecting("UNKNOWN: ipv4:127.0.0.1:4: Tls handshake failed: "
                  "SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version "
                  "number"),
       "speaks in clear text, and this process has keys"},
      {unavailable,
       Connecting("UNKNOWN: ipv4:127.0.0.1:4: Custom verification check failed "
                  "with error: UNAUTHENTICATED: the certificate expired at "
                  "Jan  1 00:00:00 2026 GMT"),
       "the certificate expired at Jan  1 00:00:00 2026 GMT"},
      {unavailable, "Socket closed", "closed before an answer"},
      {unavailable,
       Connecting("UNKNOWN: ipv4:10.0.0.1:4: connection attempt timed out"),
       "no answer in time"},
      {unavailable,
       Connecting("UNKNOWN: ipv4:10.0.0.1:4: Failed to connect to remote "
                  "host: No route to host"),
       "no way in the network"},
      {unavailable, Connecting("UNKNOWN: ipv4:"),
       "can't be reached (UNKNOWN: ipv4:); is it started"},
      {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded",
       "no answer in time"},
      {grpc::StatusCode::UNIMPLEMENTED, "", "a ps, a worker"},
      {grpc::StatusCode::UNIMPLEMENTED, "unknown service parasol.Chief",
       "a ps, a worker"},
      {grpc::StatusCode::UNIMPLEMENTED,
       "Received http2 header with status: 404", "another program answers"},
  };
  for (const FailureCase& c : cases) {
    SCOPED_TRACE(c.message);
    const std::string line = DescribeCallFailure({c.code, c.message});
    EXPECT_THAT(line, HasSubstr(c.want));
    EXPECT_THAT(line, Not(HasSubstr("last error")));
  }
}

TEST(DescribeCallFailureTest, AServersOwnMessageStaysAsItIs) {
  const std::string own = "ps/1 at h:1: Socket closed";
  for (int code = 1; code <= 16; ++code) {
    EXPECT_EQ(DescribeCallFailure({static_cast<grpc::StatusCode>(code), own}),
              own);
  }
}

}  // namespace
}  // namespace parasol
