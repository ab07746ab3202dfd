#ifndef PARASOL_ML_TAPE_TAPE_H_
#define PARASOL_ML_TAPE_TAPE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/tape/tensor.h"

namespace parasol {

class TapeState;

// Records the operations of this thread on tensors that it watches, and what
// follows from these, and gives gradients: tf.GradientTape. Records from its
// construction on; tapes nest, and each records for itself:
//
//   GradientTape tape;
//   const Tensor loss = ReduceMean(Square(MatMul(x, w) - y));
//   const auto gradients = tape.Gradient(loss, {w, b});
//
// A gradient is computed by operations, which tapes around this one record: so
// gradients of gradients are taken by an inner and an outer tape.
//
// Used, and destroyed, by the thread that made it.
class GradientTape {
 public:
  struct Options {
    // False: Gradient() ends recording, and gives gradients once; memory is
    // freed while it computes them.
    bool persistent = false;
    // True: leaves that can be trained (Leaf) are watched when they are read.
    bool watch_variables = true;
  };

  GradientTape() : GradientTape(Options()) {}
  explicit GradientTape(const Options& options);
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Makes gradients by `x` possible, from what is computed of it from now on.
  // Does nothing for ints and errors.
  void Watch(const Tensor& x);
  // Returns the keys of the leaves that are watched, in the order in which they
  // were read first.
  std::vector<const void*> WatchedVariables() const;

  // Keeps the tape from recording as long as it lives, and no longer than the
  // tape.
  class [[nodiscard]] Pause {
   public:
    explicit Pause(TapeState& state);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    TapeState& state_;
  };
  // Pauses recording until the result is destroyed: tape.stop_recording().
  Pause StopRecording() { return Pause(*state_); }
  // Ends recording, as the end of TensorFlow's `with` does.
  void End();
  // Forgets all that was recorded and watched.
  void Reset();

  // How the gradient by a source is returned that no target depends on.
  enum class Unconnected {
    kNone,  // a tensor that is not connected() and has no values
    kZero,  // zeros of the source's shape
  };
  struct GradientOptions {
    Unconnected unconnected = Unconnected::kNone;
    // Gradient of what is sought by each target, of its shape. Empty: ones.
    std::vector<Tensor> output_gradients = {};
    // Called once for each source, by its number, as soon as its gradient is
    // complete, while other sources' are still computed: with kNone as
    // `unconnected`, and on this thread. An error ends the call, with it.
    std::function<absl::Status(size_t source, const Tensor& gradient)> ready =
        nullptr;
  };

  // Returns the gradients of the sum of the elements of all targets by each
  // source: tensors of the sources' shapes. A source is a tensor that was
  // watched, or follows from one, or a leaf, however often it was read.
  //   FailedPrecondition  a tape that is not persistent has given its
  //                       gradients.
  //   InvalidArgument     a target or source is int64, or an output gradient
  //                       has another shape than its target.
  //   Unimplemented       a custom operation's second derivative.
  //   others              errors of targets, and of gradients' operations.
  absl::StatusOr<std::vector<Tensor>> Gradient(absl::Span<const Tensor> targets,
                                               absl::Span<const Tensor> sources,
                                               const GradientOptions& options);
  absl::StatusOr<std::vector<Tensor>> Gradient(
      absl::Span<const Tensor> targets, absl::Span<const Tensor> sources) {
    return Gradient(targets, sources, GradientOptions());
  }
  absl::StatusOr<std::vector<Tensor>> Gradient(const Tensor& target,
                                               absl::Span<const Tensor> sources,
                                               const GradientOptions& options) {
    return Gradient(absl::MakeConstSpan(&target, 1), sources, options);
  }
  absl::StatusOr<std::vector<Tensor>> Gradient(
      const Tensor& target, absl::Span<const Tensor> sources) {
    return Gradient(target, sources, GradientOptions());
  }
  // Returns the gradient by one source. An error is the tensor's status.
  Tensor Gradient(const Tensor& target, const Tensor& source,
                  const GradientOptions& options);
  Tensor Gradient(const Tensor& target, const Tensor& source) {
    return Gradient(target, source, GradientOptions());
  }

 private:
  const bool persistent_;
  bool is_spent_ = false;
  const std::unique_ptr<TapeState> state_;
};

// Returns `value` as read from a variable with this key: all reads are one
// source to a tape. Tapes of this thread that watch variables watch it, if it
// is trainable.
Tensor Leaf(const void* key, const Tensor& value, bool trainable = true);

// Returns a tensor of the same values that no tape follows: tf.stop_gradient.
Tensor StopGradient(const Tensor& x);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_TAPE_H_
