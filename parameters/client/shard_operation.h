#ifndef PARASOL_PARAMETERS_CLIENT_SHARD_OPERATION_H_
#define PARASOL_PARAMETERS_CLIENT_SHARD_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "parameters/client/completion.h"
#include "proto/job.pb.h"

namespace parasol {

// A push or pull of the caller, as all of its operations know it. Constant once
// its operations are made, but for the completion, which counts these.
struct Call {
  struct Sync {
    int64_t step = 0;
    int32_t replica = 0;
  };

  bool is_push = false;
  // The run, whose name outlives the operations' streams. One message has the
  // operations of one run: names are compared as pointers.
  const std::string* run_id = nullptr;
  // The gradient of synchronous training that a push is.
  std::optional<Sync> sync = std::nullopt;
  // Number of updates that a pull waits for.
  int64_t min_updates = 0;
  mutable Completion completion = Completion();

  // Returns true if an answer may have to wait for what other workers send.
  bool waits_for_others() const { return sync.has_value() || min_updates > 0; }
};

// One operation of a call, as one shard is asked for it. A push whose subject
// has targets is a push-pull: its answer has the values behind the update.
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
    // The range's place in the caller's memory: a push has a gradient, a pull a
    // target, a push-pull both.
    const float* gradient = nullptr;
    float* target = nullptr;
  };
  using Ranges = absl::InlinedVector<Range, 1>;

  // Rows of a sparse table.
  struct Rows {
    uint32_t table = 0;
    uint32_t count = 0;
    size_t width = 0;
    // The ids and gradients in the caller's memory; null if the encoded
    // operation has them.
    const uint64_t* ids = nullptr;
    const float* gradients = nullptr;
    // How often each id occurs, as ids and gradients are; has_counts is false
    // if nothing says that.
    const uint32_t* counts = nullptr;
    bool has_counts = false;
    // Rows of the target that an answer writes: row i goes to row positions[i];
    // if empty, to row i.
    std::vector<uint32_t> positions = {};
    float* target = nullptr;
  };

  std::shared_ptr<const Call> call;
  size_t shard = 0;
  size_t lane = 0;
  // True if all elements travel in float32, whatever the encoding and share of
  // others.
  bool exact = false;
  std::variant<Ranges, Rows> subject = {};

  bool is_dense() const { return std::holds_alternative<Ranges>(subject); }
  // Require is_dense(), and that it is false.
  const Ranges& ranges() const { return std::get<Ranges>(subject); }
  const Rows& rows() const { return std::get<Rows>(subject); }

  Kind kind() const {
    if (is_dense()) return call->is_push ? Kind::kPush : Kind::kPull;
    return call->is_push ? Kind::kRowPush : Kind::kRowPull;
  }
  // Returns true if the answer has values.
  bool gives_values() const {
    if (!call->is_push) return true;
    return is_dense() ? ranges().front().target != nullptr
                      : rows().target != nullptr;
  }
  // Returns true if the shard recognises a resend by its sequence.
  bool has_sequence() const { return call->is_push && !call->sync.has_value(); }
};

// An operation and how its elements travel. Constant once made.
struct EncodedOperation {
  ShardOperation asked;
  // The encoding of the elements that are pushed, or of those that are
  // answered.
  job::Encoding encoding = job::FLOAT32;
  // All payloads one after the other. Null if they are sent from the caller's
  // memory, gradients in float32.
  std::unique_ptr<const std::byte[]> payload = nullptr;
  // Number of elements that are sent of each range of a sparsified gradient;
  // empty if all are sent.
  absl::InlinedVector<uint32_t, 4> kept = {};
  // Number of payloads of the operation, and their bytes.
  size_t payloads = 0;
  size_t payload_bytes = 0;
  // Bytes for which the operation counts in messages and in flight: its
  // gradients' bytes or its answer's values', whichever are more.
  size_t bytes = 0;

  const Call& call() const { return *asked.call; }
  // Returns true if the transport reads memory that is not the operation's own.
  bool borrows_memory() const {
    return payload == nullptr && asked.kind() != ShardOperation::Kind::kPull;
  }
};

// Returns the number of bytes of the values that the operation asks for.
size_t AnswerBytes(const EncodedOperation& operation);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_SHARD_OPERATION_H_
