#ifndef PARASOL_CLUSTER_CLIENT_SHARD_OPERATION_H_
#define PARASOL_CLUSTER_CLIENT_SHARD_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/client/completion.h"
#include "proto/job.pb.h"

namespace parasol {

// One operation of a push or pull, as one shard is asked for it.
struct ShardOperation {
  enum class Kind { kPush, kPull, kRowPush, kRowPull };

  // Elements [first, first + count) of a part; in the caller's variable they
  // begin at `offset`.
  struct Range {
    uint32_t part = 0;
    uint64_t first = 0;
    uint64_t count = 0;
    size_t variable = 0;
    size_t offset = 0;
    // The range's place in the caller's memory; one of the two is set.
    const float* gradient = nullptr;
    float* target = nullptr;
    // Number of elements that are sent of a sparsified gradient.
    uint32_t kept = 0;
  };

  // Rows of a sparse table.
  struct Rows {
    uint32_t table = 0;
    uint32_t count = 0;
    size_t width = 0;
    // The ids and gradients in the caller's memory; null if `payload` has them.
    const uint64_t* ids = nullptr;
    const float* gradients = nullptr;
    // Rows of the target that a pull writes: row i goes to row positions[i]; if
    // empty, to row i.
    std::vector<uint32_t> positions = {};
    float* target = nullptr;
  };

  struct Sync {
    int64_t step = 0;
    int32_t replica = 0;
  };

  Kind kind = Kind::kPush;
  size_t shard = 0;
  size_t lane = 0;
  // The run. One message has the operations of one run: ids are compared as
  // pointers.
  std::shared_ptr<const std::string> run_id = nullptr;
  std::shared_ptr<Completion> completion = nullptr;
  job::Encoding encoding = job::FLOAT32;
  // True if all elements travel in float32, whatever the encoding and share of
  // others.
  bool exact = false;
  // The ranges of a kPush or kPull.
  absl::InlinedVector<Range, 1> ranges = {};
  bool sparsified = false;
  // The rows of a kRowPush or kRowPull.
  Rows rows = {};
  std::optional<Sync> sync = std::nullopt;
  int64_t min_updates = 0;
  // All payloads one after the other. Null if they are sent from the caller's
  // memory, gradients in float32.
  std::unique_ptr<std::byte[]> payload = nullptr;
  // Number of payloads of the operation, and bytes of these or of the answer's.
  size_t payloads = 0;
  size_t bytes = 0;

  // The following are set by the outbox.
  uint64_t id = 0;
  uint64_t sequence = 0;
  bool was_sent = false;

  // Set by the link.
  absl::Time sent_at = absl::InfinitePast();

  bool is_push() const { return kind == Kind::kPush || kind == Kind::kRowPush; }
  // Returns true if the shard recognises a resend by its sequence.
  bool has_sequence() const { return is_push() && !sync.has_value(); }
  // Returns true if the answer may have to wait for what other workers send.
  bool waits_for_others() const { return sync.has_value() || min_updates > 0; }
  // Returns true if the transport reads memory that is not the operation's own.
  bool borrows_memory() const {
    return kind != Kind::kPull && payload == nullptr;
  }
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_SHARD_OPERATION_H_
