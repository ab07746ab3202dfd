#include "base/page_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PageServerTest : public testing::Test {
 protected:
  PageServerTest()
      : server_(PageServer::Start("127.0.0.1", 0, [](absl::string_view path) {
                  PageServer::Page page;
                  page.status = path == "/page" ? 200 : 404;
                  page.body = absl::StrCat("page ", path);
                  return page;
                }).value()) {}

  Descriptor Connect() const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    return socket;
  }
  static void Send(const Descriptor& socket, absl::string_view bytes) {
    EXPECT_EQ(send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string Receive(const Descriptor& socket) {
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(socket.get(), buffer, sizeof(buffer), 0)) > 0;) {
      answer.append(buffer, n);
    }
    return answer;
  }
  std::string Ask(absl::string_view request) const {
    const Descriptor socket = Connect();
    Send(socket, request);
    return Receive(socket);
  }

  const std::unique_ptr<PageServer> server_;
};

TEST_F(PageServerTest, APageIsServedWholeAndTheConnectionClosed) {
  EXPECT_THAT(Ask("GET /page?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("Content-Length: 10\r\n"),
                    EndsWith("\r\n\r\npage /page")));
  EXPECT_THAT(Ask("HEAD /page HTTP/1.0\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 10\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(PageServerTest, WhatIsNoRequestForAPageIsRefused) {
  EXPECT_THAT(Ask("GET /other HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Ask("POST /page HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Ask("\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET /page\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask("GET  HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Ask(std::string(PageServer::kMaxRequestBytes + 1, 'x')),
              StartsWith("HTTP/1.1 431 "));
}

TEST_F(PageServerTest, HalfRequestsHoldNobodyUp) {
  std::vector<Descriptor> halves;
  // More than the server keeps: the oldest make way.
  for (const size_t count : {size_t{2}, size_t{50}, 2 * size_t{128}}) {
    while (halves.size() < count) {
      halves.push_back(Connect());
      Send(halves.back(),
           halves.size() % 2 == 0 ? "" : "GET /page HTTP/1.1\r\n");
    }
    EXPECT_THAT(Ask("GET /page HTTP/1.1\r\n\r\n"), EndsWith("page /page"))
        << count;
  }
  // One that goes on is answered.
  Send(halves.back(), "GET /page HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Receive(halves.back()), EndsWith("page /page"));
  // The first one was cut off.
  EXPECT_EQ(Receive(halves.front()), "");
}

TEST_F(PageServerTest, AServerEndsWhileHalfRequestsWait) {
  const Descriptor half = Connect();
  Send(half, "GET /pa");
  auto other = PageServer::Start(
      "127.0.0.1", 0, [](absl::string_view) { return PageServer::Page(); });
  ASSERT_OK(other);
}

TEST_F(PageServerTest, ATakenPortIsAnError) {
  EXPECT_THAT(
      PageServer::Start("127.0.0.1", server_->port(), nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in use")));
}

}  // namespace
}  // namespace parasol
