#ifndef PARASOL_CLUSTER_RPC_SHARED_PAYLOADS_H_
#define PARASOL_CLUSTER_RPC_SHARED_PAYLOADS_H_

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_memory.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/parameter.pb.h"

namespace parasol {

// Key and value in a call's metadata: the key of the client's offer, and the
// ps's answer under the same key.
inline constexpr char kSharedMemoryKey[] = "parasol-shared-memory";
inline constexpr char kSharedMemoryAccepted[] = "accepted";

// The large payloads of one Exchange stream between processes of one machine.
// They go through memory that both see instead of the socket, which would copy
// them twice. Frames name the blocks that they are in.
//
// Each direction has blocks of kBlockBytes. The sender takes the first free
// ones, so that few messages in flight stay in the processor's caches; the
// receiver frees them when it no longer reads them. While too few are free,
// payloads go through the socket: nothing waits.
//
// One thread at a time sends, one at a time receives; any thread may free
// blocks.
class SharedPayloads {
 public:
  static constexpr size_t kBlockBytes = 256 << 10;
  static constexpr size_t kBlocks = 128;  // 32 MiB per direction
  // Minimum size of a shared payload; smaller ones are sent faster in the
  // frame.
  static constexpr size_t kMinBytes = 16 << 10;

  // Creates the worker's end. Errors are SharedMemory::Create()'s.
  static absl::StatusOr<std::unique_ptr<SharedPayloads>> Create();
  // Opens the ps's end of a worker's offer. Errors are SharedMemory::Open()'s.
  static absl::StatusOr<std::unique_ptr<SharedPayloads>> Open(
      absl::string_view offer);

  const std::string& offer() const { return memory_->offer(); }
  // Ends the offer, when the peer has opened it or will not.
  void CloseOffer() { memory_->Close(); }

  // Copies payloads of kMinBytes and more into free blocks; `payloads` keeps
  // the others, in order. The entries added to `shared` belong into the header
  // of the frame that has the others, which has to be sent. Returns the bytes
  // copied.
  size_t Send(std::vector<PayloadRef>& payloads,
              google::protobuf::RepeatedPtrField<wire::SharedPayload>& shared);

  // Frees the blocks of a received frame when it is destroyed. May outlive the
  // SharedPayloads.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&&) = default;
    Hold& operator=(Hold&& other);
    ~Hold() { Free(); }

    size_t bytes() const { return bytes_; }

   private:
    friend class SharedPayloads;
    void Free();

    std::shared_ptr<SharedMemory> memory_;
    std::vector<std::atomic_ref<uint32_t>> states_;
    size_t bytes_ = 0;
  };

  // Inserts the payloads that a received header lists as shared among the
  // frame's other payloads. They are read in place while the hold lives; the
  // peer may write to them meanwhile.
  //   InvalidArgument  the peer lists what can't be, such as a block that is
  //                    not filled, or named already.
  absl::StatusOr<Hold> Receive(
      const google::protobuf::RepeatedPtrField<wire::SharedPayload>& shared,
      std::vector<PayloadView>& payloads);

 private:
  // The state of a block: free until the sender has filled it, filled until the
  // receiver has found it in a frame, in use until the receiver frees it.
  enum State : uint32_t { kFree = 0, kFilled = 1, kInUse = 2 };

  // The blocks that one end fills, as they lie in the memory: their states,
  // then the blocks.
  class Direction {
   public:
    explicit Direction(std::byte* begin) : begin_(begin) {}

    static constexpr size_t kStateBytes = 4096;
    static constexpr size_t kBytes = kStateBytes + kBlocks * kBlockBytes;

    std::atomic_ref<uint32_t> state(size_t block) const {
      return std::atomic_ref<uint32_t>(
          reinterpret_cast<uint32_t*>(begin_)[block]);
    }
    std::byte* block(size_t block) const {
      return begin_ + kStateBytes + block * kBlockBytes;
    }

   private:
    std::byte* begin_;
  };

  SharedPayloads(std::shared_ptr<SharedMemory> memory, bool is_worker);

  // Returns enough free blocks for `bytes`; empty if there are too few.
  std::vector<uint32_t> FreeBlocks(size_t bytes);
  bool MayFill(uint32_t block);
  absl::StatusOr<PayloadView> View(const wire::SharedPayload& shared,
                                   Hold& hold) const;

  const std::shared_ptr<SharedMemory> memory_;
  const Direction sent_;
  const Direction received_;
  std::bitset<kBlocks> populated_;  // the blocks of sent_ that have pages
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_SHARED_PAYLOADS_H_
