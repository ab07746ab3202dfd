#ifndef PARASOL_CLUSTER_LANE_SOCKET_HANDLE_H_
#define PARASOL_CLUSTER_LANE_SOCKET_HANDLE_H_

#include <unistd.h>

#include <utility>

namespace parasol {

// The owner of a socket's descriptor, or of none (-1).
class SocketHandle {
 public:
  SocketHandle() = default;
  explicit SocketHandle(int fd) : fd_(fd) {}
  SocketHandle(SocketHandle&& other) : fd_(std::exchange(other.fd_, -1)) {}
  SocketHandle& operator=(SocketHandle&& other) {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~SocketHandle() {
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_LANE_SOCKET_HANDLE_H_
