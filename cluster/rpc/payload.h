#ifndef PARASOL_CLUSTER_RPC_PAYLOAD_H_
#define PARASOL_CLUSTER_RPC_PAYLOAD_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace parasol {

// Received bytes: a run of pieces, as the socket delivered them, at any
// alignment. Points into a frame that keeps them alive.
class PayloadView {
 public:
  using Pieces = absl::InlinedVector<absl::string_view, 1>;

  PayloadView() = default;
  explicit PayloadView(Pieces pieces, bool may_change = false);

  // True if the peer can still write to the bytes: anything that memory safety
  // depends on has to be checked in a copy. Elements need not be: the check
  // that they are finite is against a job's mistakes, not against a peer that
  // writes late.
  bool may_change() const { return may_change_; }
  size_t size() const { return size_; }
  const Pieces& pieces() const { return pieces_; }

  // Copies bytes [first, first + count) to `out`; they must be there.
  void CopyTo(size_t first, size_t count, void* out) const;

  // Returns bytes [first, first + count), which must be there: in place if they
  // are in one piece, otherwise copied to `scratch` (of at least `count`
  // bytes).
  const std::byte* Contiguous(size_t first, size_t count,
                              std::byte* scratch) const;

 private:
  Pieces pieces_;
  size_t size_ = 0;
  bool may_change_ = false;
};

// The memory of a received message, into which its payloads point.
class PayloadMemory {
 public:
  virtual ~PayloadMemory() = default;
  // Returns what keeps the memory when the message is gone. Called on the
  // thread that has the message.
  virtual std::shared_ptr<const void> Keep() = 0;
  // Number of bytes that are kept then.
  virtual size_t bytes() const = 0;
};

// Bytes to be sent from where they are. `owner` is released, on any thread,
// when the transport no longer reads them.
struct PayloadRef {
  const void* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_PAYLOAD_H_
