#include "base/page_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/resource_limits.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int kPageBacklog = 128;
// Longest sleep while somebody has a deadline.
constexpr int kPageTickMillis = 200;

absl::Status CantServe(int error) {
  return absl::InvalidArgumentError(std::strerror(error));
}

absl::StatusOr<Descriptor> ListenForPages(const std::string& host, int port) {
  addrinfo hints = {};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return absl::InvalidArgumentError(gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  Descriptor listening(::socket(found->ai_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.is_open()) return CantServe(errno);
  const int on = 1;
  setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listening.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(listening.get(), kPageBacklog) != 0) {
    return CantServe(errno);
  }
  return listening;
}

int ListeningPortOf(const Descriptor& listening) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  CHECK(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address),
                    &size) == 0);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

std::string AnswerOf(absl::string_view status, absl::string_view content_type,
                     absl::string_view body, bool has_body = true) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", content_type,
                      "\r\nContent-Length: ", body.size(),
                      "\r\nConnection: close\r\n\r\n", has_body ? body : "");
}

std::string Refusal(absl::string_view status) {
  return AnswerOf(status, "text/plain; charset=utf-8",
                  absl::StrCat(status, "\n"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageServer>> PageServer::Start(
    const std::string& host, int port, Pages pages) {
  ASSIGN_OR_RETURN(Descriptor listening, ListenForPages(host, port));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return CantServe(errno);
  const int chosen = ListeningPortOf(listening);
  return std::unique_ptr<PageServer>(new PageServer(
      std::move(listening), std::move(wake), chosen, std::move(pages)));
}

PageServer::PageServer(Descriptor listening, Descriptor wake, int port,
                       Pages pages)
    : listening_(std::move(listening)),
      wake_(std::move(wake)),
      port_(port),
      pages_(std::move(pages)),
      thread_([this] { Run(); }) {}

PageServer::~PageServer() {
  const uint64_t one = 1;
  CHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void PageServer::Run() {
  while (Wait()) {
    Accept();
    const SteadyTime now = std::chrono::steady_clock::now();
    for (auto each = connections_.begin(); each != connections_.end();) {
      const bool stays = Serve(*each) && each->deadline > now;
      each = stays ? std::next(each) : connections_.erase(each);
    }
  }
}

bool PageServer::Wait() {
  std::vector<pollfd> polled;
  polled.push_back({wake_.get(), POLLIN, 0});
  polled.push_back(
      {listening_.get(), static_cast<short>(may_accept_ ? POLLIN : 0), 0});
  for (const Connection& each : connections_) {
    const bool sends = each.sent < each.answer.size();
    polled.push_back(
        {each.socket.get(), static_cast<short>(sends ? POLLOUT : POLLIN), 0});
  }
  const bool has_deadline = !connections_.empty() || !may_accept_;
  may_accept_ = true;
  poll(polled.data(), polled.size(), has_deadline ? kPageTickMillis : -1);
  return polled.front().revents == 0;
}

void PageServer::Accept() {
  // At most so many at once: those who connected before have a turn.
  for (size_t i = 0; i < kMaxConnections; ++i) {
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr,
                              SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      // It would be told at once, again and again.
      may_accept_ = !IsOutOfDescriptors(errno);
      if (!may_accept_) {
        LOG_EVERY(WARNING, absl::Seconds(10))
            << "nobody can look at metrics: " << DescriptorsHint();
      }
      return;
    }
    if (connections_.size() == kMaxConnections) connections_.pop_front();
    connections_.push_back({.socket = std::move(socket),
                            .deadline = std::chrono::steady_clock::now() +
                                        absl::ToChronoMilliseconds(kLimit)});
  }
}

bool PageServer::Serve(Connection& connection) {
  if (connection.answer.empty()) {
    if (!Receive(connection)) return false;
    if (connection.answer.empty()) return true;
  }
  while (connection.sent < connection.answer.size()) {
    const ssize_t count = send(connection.socket.get(),
                               connection.answer.data() + connection.sent,
                               connection.answer.size() - connection.sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += count;
    if (connection.sent == connection.answer.size()) {
      shutdown(connection.socket.get(), SHUT_WR);
    }
  }
  // Closing what has unread bytes would take the answer back.
  char dropped[1024];
  const ssize_t count =
      recv(connection.socket.get(), dropped, sizeof(dropped), MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

bool PageServer::Receive(Connection& connection) {
  char buffer[4096];
  while (true) {
    const ssize_t count =
        recv(connection.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.request.append(buffer, count);
    const size_t end = connection.request.find("\r\n\r\n");
    if (end != std::string::npos) {
      connection.answer =
          Answer(absl::string_view(connection.request).substr(0, end));
      return true;
    }
    if (connection.request.size() > kMaxRequestBytes) {
      connection.answer = Refusal("431 Request Header Fields Too Large");
      return true;
    }
  }
}

std::string PageServer::Answer(absl::string_view request) const {
  const absl::string_view line = request.substr(0, request.find("\r\n"));
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[1].empty() ||
      words[2].substr(0, 7) != "HTTP/1.") {
    return Refusal("400 Bad Request");
  }
  if (words[0] != "GET" && words[0] != "HEAD") {
    return Refusal("405 Method Not Allowed");
  }
  const Page page = pages_(words[1].substr(0, words[1].find('?')));
  return AnswerOf(page.status == 200 ? "200 OK" : "404 Not Found",
                  page.content_type, page.body, words[0] == "GET");
}

}  // namespace parasol
