#ifndef PARASOL_CLUSTER_RPC_SHARED_MEMORY_H_
#define PARASOL_CLUSTER_RPC_SHARED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Memory that two processes of one machine see, for instance a worker and a ps.
// One creates it and sends its offer() to the other, over any network; the
// other finds out whether it is on the same machine when it opens it. The size
// is sealed: mapped memory stays readable, whatever the other process does. The
// contents are at every moment whatever either has written. Pages are taken
// from the system, and counted against the control group of the process, when
// they are first written; they go back when both have let go of the memory.
class SharedMemory {
 public:
  // Creates zeroed memory. `size` is in bytes, a multiple of 4096.
  //   Unavailable  the system gives none; the message says why.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Create(size_t size);

  // Takes the pages of `size` bytes from `offset` on now; both are multiples of
  // 4096. Returns false if the system has none left; writing there would end
  // the process.
  bool Populate(size_t offset, size_t size);

  // The offer: a line of ASCII. A process of the same machine and pid
  // namespace, and of the same user, can open it until Close().
  const std::string& offer() const { return offer_; }
  // Ends the offer; the memory stays.
  void Close();

  // Opens a peer's offer, which may be any string.
  //   NotFound         the offer is of another machine, or of a container that
  //                    sees other processes.
  //   InvalidArgument  the string is no offer, or not of sealed memory of
  //                    `size`.
  //   Unavailable      the system does not allow it; the message says why.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Open(
      absl::string_view offer, size_t size);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // The memory, at a multiple of 4096 bytes.
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  explicit SharedMemory(size_t size) : size_(size) {}
  absl::Status Map(int descriptor);

  const size_t size_;
  std::byte* mapping_ = nullptr;
  std::byte* data_ = nullptr;
  int descriptor_ = -1;  // open while the memory is offered
  std::string offer_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_SHARED_MEMORY_H_
