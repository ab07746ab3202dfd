#ifndef PARASOL_TESTS_BENCHMARK_TCP_SOCKET_H_
#define PARASOL_TESTS_BENCHMARK_TCP_SOCKET_H_

#include <cstddef>
#include <cstdint>

// TCP over loopback, and the protocol between raw TCP's client and server.
// Every error fails a CHECK: both ends are this benchmark.
namespace parasol {

// Header of each exchange. The ids of a row exchange follow it, then the
// gradient of a push. The server answers in order, with the values or, if
// nothing is pulled, with four bytes.
struct TcpRequest {
  enum Kind : uint32_t { kVariable, kRows };
  uint32_t kind = kVariable;
  uint32_t push = 0;
  uint32_t pull = 0;
  uint32_t variable = 0;
  uint32_t count = 0;  // elements, or rows
};

// Owns a socket.
class TcpSocket {
 public:
  explicit TcpSocket(int fd);
  ~TcpSocket();
  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;

  static int Connect(int port);

  int fd() const { return fd_; }
  // Returns false once the peer has closed the connection.
  bool ReadAll(void* to, size_t size);
  void WriteAll(const void* from, size_t size);

 private:
  const int fd_;
};

// Listens on a free port.
class TcpListener {
 public:
  TcpListener();
  int port() const { return port_; }
  // Returns the next connection; the caller owns it.
  int Accept();

 private:
  const int fd_;
  int port_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TCP_SOCKET_H_
