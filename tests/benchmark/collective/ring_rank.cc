#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/log.h"
#include "tests/benchmark/collective/rank_order.h"
#include "tests/benchmark/collective/rank_timing.h"

namespace parasol {
namespace {

// Bytes that are received at a time to be added: they stay in the cache.
constexpr size_t kPiece = 256 << 10;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void MakeRaw(const Descriptor& socket) {
  const int on = 1;
  CHECK(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ==
        0);
  CHECK(fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0);
}

// The connections to the next rank and from the one before.
struct Ring {
  explicit Ring(const RankOrder& order) {
    const Descriptor listening(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    CHECK(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), size) ==
          0);
    CHECK(listen(listening.get(), 4) == 0);
    getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
    Publish(order, absl::StrCat(ntohs(address.sin_port)));
    int port = 0;
    CHECK(absl::SimpleAtoi(
        AwaitPublished(order, (order.rank + 1) % order.ranks), &port));
    next = Descriptor(socket(AF_INET, SOCK_STREAM, 0));
    address = Loopback(port);
    CHECK(connect(next.get(), reinterpret_cast<sockaddr*>(&address), size) ==
          0);
    before = Descriptor(accept(listening.get(), nullptr, nullptr));
    CHECK(before.is_open());
    MakeRaw(next);
    MakeRaw(before);
  }

  Descriptor next;
  Descriptor before;
};

// Sends `out` to the next rank while `take` receives `in_bytes` bytes from the
// one before: it is called when some are there, and returns how many it took.
template <typename Take>
void Exchange(const Ring& ring, const char* out, size_t out_bytes,
              size_t in_bytes, const Take& take) {
  while (out_bytes > 0 || in_bytes > 0) {
    pollfd polled[] = {
        {ring.before.get(), static_cast<short>(in_bytes > 0 ? POLLIN : 0), 0},
        {ring.next.get(), static_cast<short>(out_bytes > 0 ? POLLOUT : 0), 0}};
    poll(polled, 2, -1);
    if (out_bytes > 0) {
      const ssize_t sent = send(ring.next.get(), out, out_bytes, MSG_NOSIGNAL);
      CHECK(sent > 0 || errno == EAGAIN) << std::strerror(errno);
      out += std::max<ssize_t>(sent, 0);
      out_bytes -= std::max<ssize_t>(sent, 0);
    }
    if (in_bytes > 0) in_bytes -= take();
  }
}

size_t Receive(const Ring& ring, void* to, size_t most) {
  const ssize_t count = recv(ring.before.get(), to, most, 0);
  CHECK(count > 0 || (count < 0 && errno == EAGAIN)) << std::strerror(errno);
  return std::max<ssize_t>(count, 0);
}

// Adds what comes from the rank before to `to`.
class Adder {
 public:
  Adder(const Ring& ring, float* to, size_t bytes, std::vector<char>& piece)
      : ring_(ring), to_(to), left_(bytes), piece_(piece) {}

  size_t Take() {
    const size_t count = Receive(ring_, piece_.data() + rest_,
                                 std::min(left_, piece_.size() - rest_));
    left_ -= count;
    const size_t have = rest_ + count;
    const size_t whole = have / sizeof(float);
    const float* const from = reinterpret_cast<const float*>(piece_.data());
    for (size_t i = 0; i < whole; ++i) to_[i] += from[i];
    to_ += whole;
    rest_ = have % sizeof(float);
    std::memmove(piece_.data(), piece_.data() + have - rest_, rest_);
    return count;
  }

 private:
  const Ring& ring_;
  float* to_;
  size_t left_;
  std::vector<char>& piece_;
  size_t rest_ = 0;
};

void AllReduce(const Ring& ring, const RankOrder& order, float* sums,
               size_t count, std::vector<char>& piece) {
  const auto first_of = [&](int slice) {
    const int ranks = order.ranks;
    return count * ((slice % ranks + ranks) % ranks) / ranks;
  };
  const auto bytes_of = [&](int slice) {
    const int ranks = order.ranks;
    const size_t index = (slice % ranks + ranks) % ranks;
    return (count * (index + 1) / ranks - count * index / ranks) *
           sizeof(float);
  };
  for (int step = 0; step + 1 < order.ranks; ++step) {
    const int out = order.rank - step;
    Adder adder(ring, sums + first_of(out - 1), bytes_of(out - 1), piece);
    Exchange(ring, reinterpret_cast<const char*>(sums + first_of(out)),
             bytes_of(out), bytes_of(out - 1), [&] { return adder.Take(); });
  }
  for (int step = 0; step + 1 < order.ranks; ++step) {
    const int out = order.rank + 1 - step;
    char* to = reinterpret_cast<char*>(sums + first_of(out - 1));
    size_t left = bytes_of(out - 1);
    Exchange(ring, reinterpret_cast<const char*>(sums + first_of(out)),
             bytes_of(out), left, [&] {
               const size_t taken = Receive(ring, to, left);
               to += taken;
               left -= taken;
               return taken;
             });
  }
}

}  // namespace

void ReduceInRing(const RankOrder& order) {
  const Ring ring(order);
  std::vector<char> piece(kPiece);
  for (const size_t bytes : order.bytes) {
    std::vector<float> sums(bytes / sizeof(float),
                            ContributionOfRank(order.rank));
    AllReduce(ring, order, sums.data(), sums.size(), piece);
    CheckSums(sums.data(), sums.size(), order.ranks);
    // In place, so that later rounds don't overflow.
    std::fill(sums.begin(), sums.end(), 0);
    TimeRounds(bytes, order.rank == 0, [&] {
      AllReduce(ring, order, sums.data(), sums.size(), piece);
    });
  }
}

}  // namespace parasol
