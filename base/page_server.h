#ifndef PARASOL_BASE_PAGE_SERVER_H_
#define PARASOL_BASE_PAGE_SERVER_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/descriptor.h"

namespace parasol {

// An HTTP server for those who look on: small pages, one for each connection,
// which is closed behind it. One thread serves all, and waits for nobody: who
// sends half a request, or does not take the answer, holds up no other one, and
// is cut off after kLimit, or when there are kMaxConnections others.
class PageServer {
 public:
  static constexpr absl::Duration kLimit = absl::Seconds(10);
  static constexpr size_t kMaxConnections = 128;
  static constexpr size_t kMaxRequestBytes = 16 << 10;

  struct Page {
    int status = 200;  // 200 or 404
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
  };
  // Returns the page of a path. Called by the server's thread.
  using Pages = std::function<Page(absl::string_view path)>;

  // Listens on `host`, an address of this machine in figures, and `port` (0:
  // the system chooses one).
  //   InvalidArgument  why it can't, without the address.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(
      const std::string& host, int port, Pages pages);
  // Cuts off who is connected.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return port_; }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Connection {
    Descriptor socket;
    SteadyTime deadline;
    std::string request = {};
    std::string answer = {};  // empty until the request is there
    size_t sent = 0;          // bytes of the answer
  };

  PageServer(Descriptor listening, Descriptor wake, int port, Pages pages);

  void Run();
  // Waits until there is something to do. Returns false at the end.
  bool Wait();
  void Accept();
  // Receives and sends what is possible. Returns false if nothing is left.
  bool Serve(Connection& connection);
  bool Receive(Connection& connection);
  // Returns the whole answer to a request.
  std::string Answer(absl::string_view request) const;

  const Descriptor listening_;
  const Descriptor wake_;  // an eventfd
  const int port_;
  const Pages pages_;
  // Used by the thread only; the oldest first.
  std::list<Connection> connections_;
  bool may_accept_ = true;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_PAGE_SERVER_H_
