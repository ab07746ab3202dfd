#ifndef PARASOL_CLUSTER_RPC_MESSAGE_MEMORY_H_
#define PARASOL_CLUSTER_RPC_MESSAGE_MEMORY_H_

#include <cstddef>

#include "google/protobuf/arena.h"

namespace parasol {

// An arena for the header of a frame and all that is in it. The first 4 KiB are
// in the object, so headers of a few operations allocate nothing.
class MessageMemory {
 public:
  MessageMemory() : arena_(Options(first_)) {}
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

  // Returns an empty message, which lives until Reset() or the destructor.
  template <typename Message>
  Message& Make() {
    return *google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

  // Destroys all messages. Not while another thread uses one.
  void Reset() { arena_.Reset(); }

 private:
  static constexpr size_t kBytes = 4096;

  static google::protobuf::ArenaOptions Options(char* first) {
    google::protobuf::ArenaOptions options;
    options.initial_block = first;
    options.initial_block_size = kBytes;
    options.start_block_size = kBytes;
    return options;
  }

  alignas(std::max_align_t) char first_[kBytes];
  google::protobuf::Arena arena_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_MESSAGE_MEMORY_H_
