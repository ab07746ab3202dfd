#include "third_party/cuda_on_host/remote_ranks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

// Longest message: a limit for what is no message.
constexpr uint64_t kMaxBytes = uint64_t{1} << 32;

// The contents of an id.
struct HubAddress {
  uint64_t key;
  uint32_t port;
};

// What a rank says first, with its number and the number of ranks.
struct Hello {
  uint64_t key;
  int32_t size, rank;
};

struct Header {
  enum Kind : uint32_t { kAllHaveCome, kPart, kResult };
  Kind kind;
  int32_t operation, type, reduce, root, has_factor;
  double factor;
  uint64_t count;
  uint64_t bytes;  // that follow

  static Header Of(Kind kind, const Shape& shape, size_t bytes) {
    return {.kind = kind,
            .operation = static_cast<int32_t>(shape.operation),
            .type = shape.type,
            .reduce = shape.reduce,
            .root = shape.root,
            .has_factor = shape.factor.has_value(),
            .factor = shape.factor.value_or(0),
            .count = shape.count,
            .bytes = bytes};
  }
  Shape shape() const {
    Shape shape = {.operation = static_cast<Operation>(operation),
                   .count = count,
                   .type = static_cast<ncclDataType_t>(type),
                   .reduce = static_cast<ncclRedOp_t>(reduce),
                   .root = root};
    if (has_factor != 0) shape.factor = factor;
    return shape;
  }
};

template <typename T>
std::string BytesOfValue(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

bool Read(int fd, void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = recv(fd, at, bytes, 0);
    if (count <= 0) return false;
    at += count;
    bytes -= count;
  }
  return true;
}

bool Write(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count =
        send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += count;
  }
  return true;
}

// Reads a header and what follows it.
bool ReadMessage(int fd, Header& header, std::string& bytes) {
  if (!Read(fd, &header, sizeof(header)) || header.bytes > kMaxBytes) {
    return false;
  }
  bytes.resize(header.bytes);
  return Read(fd, bytes.data(), bytes.size());
}

// Adds for the ranks of one communicator. A rank that is gone brings nothing
// more: the connections of ranks that would wait for it are ended.
class Hub {
 public:
  Hub(int listening, uint64_t key) : listening_(listening), key_(key) {}

  // Runs until the ranks are gone.
  void Run() {
    int size = 1;
    std::vector<int> fds;
    for (int joined = 0; joined < size; ++joined) {
      const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      Hello hello = {};
      if (fd < 0) break;
      if (!Read(fd, &hello, sizeof(hello)) || hello.key != key_ ||
          hello.rank < 0 || hello.rank >= hello.size) {
        close(fd);
        --joined;
        continue;
      }
      size = hello.size;
      fds.resize(std::max<size_t>(fds.size(), size), -1);
      fds[hello.rank] = fd;
    }
    close(listening_);
    fds_ = fds;
    parts_.resize(fds_.size());
    Tell(BytesOfValue(Header::Of(Header::kAllHaveCome, Shape(), 0)));
    std::vector<std::thread> readers;
    for (size_t rank = 0; rank < fds_.size(); ++rank) {
      readers.emplace_back([this, rank] { ReadParts(rank); });
    }
    for (std::thread& reader : readers) reader.join();
    for (const int fd : fds_) close(fd);
  }

 private:
  struct BroughtPart {
    Shape shape;
    std::string bytes;
  };

  void Tell(const std::string& bytes) {
    for (const int fd : fds_) Write(fd, bytes);
  }

  void ReadParts(size_t rank) {
    Header header;
    std::string bytes;
    while (ReadMessage(fds_[rank], header, bytes)) {
      const std::lock_guard<std::mutex> lock(mu_);
      parts_[rank].push_back({header.shape(), std::move(bytes)});
      while (AllHaveBrought()) Answer();
    }
    // What all have brought is answered before.
    const std::lock_guard<std::mutex> lock(mu_);
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
  }

  bool AllHaveBrought() const {
    return std::none_of(parts_.begin(), parts_.end(),
                        [](const auto& parts) { return parts.empty(); });
  }

  void Answer() {
    const Shape shape = parts_[0].front().shape;
    const int ranks = static_cast<int>(parts_.size());
    std::vector<Buffers> buffers;
    std::vector<std::string> results(
        ranks, std::string(ReceivedBytes(shape, ranks), '\0'));
    for (int rank = 0; rank < ranks; ++rank) {
      if (parts_[rank].front().shape != shape) {
        Die("ranks of one communicator meet in different operations: " +
            Words(shape) + " and " + Words(parts_[rank].front().shape));
      }
      buffers.push_back(
          {parts_[rank].front().bytes.data(), results[rank].data()});
    }
    if (shape.count > 0) Perform(shape, buffers);
    for (int rank = 0; rank < ranks; ++rank) {
      parts_[rank].pop_front();
      const size_t bytes = results[rank].size();
      Write(fds_[rank],
            BytesOfValue(Header::Of(Header::kResult, shape, bytes)) +
                results[rank]);
    }
  }

  const int listening_;
  const uint64_t key_;
  std::vector<int> fds_;  // one for each rank
  std::mutex mu_;
  std::vector<std::deque<BroughtPart>> parts_;
};

// Tasks that take the result of the first operation that has none.
void TakeResult(RemoteLink& link, std::string result) {
  const RemoteLink::Awaited first = std::move(link.awaited.front());
  link.awaited.pop_front();
  const auto copy = [to = first.part.buffers.receive,
                     result = std::move(result)] {
    if (result.empty()) return;
    if (!IsInside(to, result.size())) {
      Die("an operation of NCCL names memory that was freed");
    }
    WatchWrite(to, result.size());
    std::memcpy(to, result.data(), result.size());
  };
  const TaskPtr work =
      AddTask(Kind::kCompute, first.part.comm->device, copy, {first.sent});
  Close(*first.part.end, {work});
  Advance();
}

void ReadResults(const std::shared_ptr<RemoteLink>& link,
                 const CliquePtr& clique) {
  Header header;
  std::string bytes;
  while (ReadMessage(link->fd, header, bytes)) {
    const std::lock_guard<std::recursive_mutex> lock(TheLock());
    if (link->has_left) return;
    if (header.kind == Header::kAllHaveCome) {
      link->is_complete = true;
    } else if (!link->awaited.empty()) {
      TakeResult(*link, std::move(bytes));
    }
    Notify();
  }
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  clique->has_aborted = true;
  Notify();
}

void WriteQueue(const std::shared_ptr<RemoteLink>& link) {
  while (true) {
    std::string bytes;
    {
      std::unique_lock<std::mutex> lock(link->queue_mu);
      link->queue_changed.wait(
          lock, [&] { return link->queue_ends || !link->queue.empty(); });
      if (link->queue_ends) return;
      bytes = std::move(link->queue.front());
      link->queue.pop_front();
    }
    if (!Write(link->fd, bytes)) return;
  }
}

void Queue(RemoteLink& link, std::string bytes) {
  const std::lock_guard<std::mutex> lock(link.queue_mu);
  link.queue.push_back(std::move(bytes));
  link.queue_changed.notify_all();
}

sockaddr_in Loopback(uint32_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

RemoteLink::~RemoteLink() {
  const std::lock_guard<std::mutex> lock(queue_mu);
  close(fd);
}

void RemoteLink::EndUse() { const std::lock_guard<std::mutex> lock(queue_mu); }

void StartHub(ncclUniqueId& id) {
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listening, 64) != 0 ||
      getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) !=
          0) {
    Die("NCCL's ranks of several processes have no port to meet at");
  }
  std::random_device random;
  const HubAddress hub = {.key = (uint64_t{random()} << 32) + random(),
                          .port = ntohs(address.sin_port)};
  std::memcpy(id.internal, &hub, sizeof(hub));
  std::thread([listening, hub] { Hub(listening, hub.key).Run(); }).detach();
}

std::shared_ptr<RemoteLink> JoinHub(const ncclUniqueId& id, int size, int rank,
                                    const CliquePtr& clique) {
  HubAddress hub;
  std::memcpy(&hub, id.internal, sizeof(hub));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto link = std::make_shared<RemoteLink>(fd);
  const sockaddr_in address = Loopback(hub.port);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const Hello hello = {.key = hub.key, .size = size, .rank = rank};
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0 ||
      !Write(fd, BytesOfValue(hello))) {
    return nullptr;
  }
  link->tells_of_loss = TheRandom().Below(2) == 0;
  std::thread([link, clique] {
    ReadResults(link, clique);
    link->EndUse();
  }).detach();
  std::thread([link] {
    WriteQueue(link);
    link->EndUse();
  }).detach();
  return link;
}

void EnqueueRemote(Part part) {
  const std::shared_ptr<RemoteLink> link = part.comm->clique->remote;
  part.before = part.stream->last;
  const auto bring = [link, from = part.buffers.send, shape = part.shape,
                      device = part.comm->device,
                      bytes = SentBytes(part.shape, part.comm->clique->size)] {
    NoteDone(device, 's');
    if (link->has_left) return;
    const size_t sent = from == nullptr ? 0 : bytes;
    if (sent > 0 && !IsInside(from, sent)) {
      Die("an operation of NCCL names memory that was freed");
    }
    if (sent > 0) WatchRead(from, sent);
    Queue(*link, BytesOfValue(Header::Of(Header::kPart, shape, sent)) +
                     std::string(static_cast<const char*>(from), sent));
  };
  const TaskPtr sent =
      AddTask(Kind::kCompute, part.comm->device, bring, {part.before});
  part.end = AddTask(Kind::kNone, part.comm->device, nullptr, {sent});
  part.end->is_open = true;
  part.stream->last = part.end;
  link->awaited.push_back({std::move(part), sent});
  Advance();
}

void LeaveHub(RemoteLink& link) {
  link.has_left = true;
  for (RemoteLink::Awaited& each : link.awaited) Close(*each.part.end, {});
  link.awaited.clear();
  const std::lock_guard<std::mutex> lock(link.queue_mu);
  link.queue_ends = true;
  link.queue_changed.notify_all();
  shutdown(link.fd, SHUT_RDWR);
}

}  // namespace cuda_on_host
