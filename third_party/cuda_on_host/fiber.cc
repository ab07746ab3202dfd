#include "third_party/cuda_on_host/fiber.h"

#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

#include "third_party/cuda_on_host/settings.h"

#ifndef __x86_64__
#error "Another architecture needs another cuda_on_host_switch()."
#endif

// Puts the registers that a function must keep on the stack, and takes another
// one. swapcontext() would ask the kernel for the signal mask each time.
extern "C" void cuda_on_host_switch(void** from, void* to);
asm(R"(
  .text
  .type cuda_on_host_switch, @function
cuda_on_host_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
  .size cuda_on_host_switch, . - cuda_on_host_switch
)");

namespace cuda_on_host {
namespace {

// The two ends of the switch that happens, guarded by the runtime's lock.
Fiber* from = nullptr;
Fiber* to = nullptr;

}  // namespace

Fiber::Fiber(void (*main)()) : main_(main), stack_bytes_(kStackBytes) {
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) Die("no memory for a thread's stack");
  stack_ = static_cast<char*>(stack);
  // As a call of Enter() by a function without an address leaves it, below
  // which are the six registers.
  void** const top = static_cast<void**>(stack) + kStackBytes / sizeof(void*);
  top[-2] = reinterpret_cast<void*>(&Fiber::Enter);
  position_ = top - 8;
}

void Fiber::Enter() {
  to->Arrive(nullptr);
  to->main_();
}

// AddressSanitizer is told of stacks: it takes what lies outside of the present
// one for memory of others. It says in return where the last one was.
void Fiber::Arrive([[maybe_unused]] void* fake_stack) {
#ifdef __SANITIZE_ADDRESS__
  const void* bottom = nullptr;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &from->stack_bytes_);
  from->stack_ = static_cast<const char*>(bottom);
#endif
}

void Fiber::SwitchTo(Fiber& other) {
  from = this;
  to = &other;
  void* fake_stack = nullptr;
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fake_stack, other.stack_, other.stack_bytes_);
#endif
  cuda_on_host_switch(&position_, other.position_);
  Arrive(fake_stack);
}

}  // namespace cuda_on_host
