#include "serving/testing/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace parasol {

HttpClient::HttpClient(int port)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval limit = {.tv_sec = 10, .tv_usec = 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
}

HttpClient::~HttpClient() { close(fd_); }

bool HttpClient::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

HttpAnswer HttpClient::Get(absl::string_view path) {
  Send(absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  return Receive();
}

HttpAnswer HttpClient::Post(absl::string_view path, absl::string_view body) {
  Send(absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                    "Content-Length: ", body.size(), "\r\n\r\n", body));
  return Receive();
}

HttpAnswer HttpClient::Receive() {
  size_t end = std::string::npos;
  size_t body = 0;
  HttpAnswer answer;
  while (true) {
    if (end == std::string::npos) {
      end = unread_.find("\r\n\r\n");
      if (end != std::string::npos) {
        answer.header = absl::AsciiStrToLower(unread_.substr(0, end + 2));
        const size_t length = answer.header.find("content-length: ");
        if (length == std::string::npos ||
            !absl::SimpleAtoi(
                answer.header.substr(length + 16)
                    .substr(0, answer.header.substr(length + 16).find('\r')),
                &body) ||
            !absl::SimpleAtoi(answer.header.substr(9, 3), &answer.status)) {
          return {};
        }
        end += 4;
      }
    }
    if (end != std::string::npos && unread_.size() >= end + body) {
      answer.body = unread_.substr(end, body);
      unread_.erase(0, end + body);
      return answer;
    }
    char bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
    if (n <= 0) return {};
    unread_.append(bytes, n);
  }
}

}  // namespace parasol
