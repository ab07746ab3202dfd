#ifndef PARASOL_ML_TAPE_TAPE_STATE_H_
#define PARASOL_ML_TAPE_TAPE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/tape/operation.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_memory.h"

namespace parasol {

// Record of a tape. Values that it follows have numbers, "places", in
// the order in which it met them. Not thread-safe.
class TapeState {
 public:
  // A gradient for each place; none: nothing was added yet.
  using Sums = std::vector<std::optional<Tensor>,
                           TensorAllocator<std::optional<Tensor>>>;

  explicit TapeState(bool watches_variables)
      : watches_variables_(watches_variables) {}

  bool watches_variables() const { return watches_variables_; }
  bool is_recording() const { return pauses_ == 0; }
  void Pause() { ++pauses_; }
  void Resume() { --pauses_; }

  // Follows `x` from now on, all reads of a leaf as one.
  void Watch(const Tensor& x);
  const std::vector<const void*>& watched_leaves() const {
    return watched_leaves_;
  }
  void Reset();

  // Returns true if an operation on `inputs` is one to record.
  bool Follows(absl::Span<const Tensor> inputs) const;
  // Records an operation that has an input which this follows.
  void Record(const TapeOperation& operation);

  // Tensors by which gradients are sought, and who is told of each as soon as
  // it is complete.
  struct Seekers {
    absl::Span<const Tensor> sources;
    // Takes none where no target depends on the source.
    std::optional<absl::FunctionRef<absl::Status(
        size_t source, const std::optional<Tensor>& gradient)>>
        ready;
  };

  // Returns the gradients of the targets, which have the gradients `seeds`, by
  // the sources; none where no target depends on one. If `consume`, records are
  // freed on the way.
  absl::StatusOr<std::vector<std::optional<Tensor>>> Gradient(
      absl::Span<const Tensor> targets, absl::Span<const Tensor> seeds,
      const Seekers& seekers, bool consume);

 private:
  static constexpr int kNoPlace = -1;
  using Places = absl::InlinedVector<int, 2, TensorAllocator<int>>;
  using Marks = std::vector<char, TensorAllocator<char>>;
  template <typename Key>
  using PlaceOf =
      absl::flat_hash_map<Key, int, absl::Hash<Key>, std::equal_to<Key>,
                          TensorAllocator<std::pair<const Key, int>>>;

  class CompleteSources;

  struct Recorded {
    TapeOperation operation;
    Places inputs;     // kNoPlace: not followed
    int first_output;  // the outputs' places follow each other
  };

  int PlaceOfTensor(const Tensor& x) const;
  // Marks the places that depend on a source.
  Marks MarkDependants(absl::Span<const int> sources) const;
  // Adds what the record gives to the sums of its inputs, and tells of those
  // that it completes.
  absl::Status Propagate(const Recorded& record, const Marks& dependants,
                         const Marks& is_source, CompleteSources& complete,
                         Sums& sums) const;

  const bool watches_variables_;
  int pauses_ = 0;
  int places_ = 0;
  PlaceOf<uint64_t> by_id_;
  PlaceOf<const void*> by_leaf_;
  std::vector<const void*> watched_leaves_;
  // Records stay where they are while gradients add others behind them.
  std::deque<Recorded, TensorAllocator<Recorded>> records_;
};

// The tapes of this thread, the outermost first.
std::vector<TapeState*>& TapesOfThread();

// Keeps all tapes of this thread from recording while it lives.
class NoTapes {
 public:
  NoTapes() { TapesOfThread().swap(tapes_); }
  ~NoTapes() { TapesOfThread().swap(tapes_); }
  NoTapes(const NoTapes&) = delete;
  NoTapes& operator=(const NoTapes&) = delete;

 private:
  std::vector<TapeState*> tapes_;
};

// Records an operation on the tapes of this thread that follow an input.
void RecordOnTapes(const TapeOperation& operation);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TAPE_STATE_H_
