#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_FIBER_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_FIBER_H_

#include <cstddef>

namespace cuda_on_host {

// A flow of control with a stack of its own. Exactly one flow of a thread runs
// at a time. Never destroyed.
class Fiber {
 public:
  static constexpr size_t kStackBytes = size_t{256} << 10;

  // The flow that runs already, on the stack that it has.
  Fiber() = default;
  // A flow that begins with `main`, which must not return.
  explicit Fiber(void (*main)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Stops this flow, which runs, and lets `other` go on.
  void SwitchTo(Fiber& other);

  // The lowest address of the stack; null if the flow was there already and has
  // not been stopped yet.
  const char* stack() const { return stack_; }

 private:
  static void Enter();
  void Arrive(void* fake_stack);

  void (*main_)() = nullptr;
  const char* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* position_ = nullptr;  // The stack pointer while it stands still.
};

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_FIBER_H_
