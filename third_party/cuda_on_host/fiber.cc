#include "third_party/cuda_on_host/fiber.h"

#include <sys/mman.h>

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

Fiber::Fiber(void (*main)()) {
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) Die("no memory for a thread's stack");
  stack_ = static_cast<char*>(stack);
  // As a call of main() by a function without an address leaves it, below which
  // are the six registers.
  void** const top = reinterpret_cast<void**>(stack_ + kStackBytes);
  top[-2] = reinterpret_cast<void*>(main);
  position_ = top - 8;
}

void Fiber::SwitchTo(Fiber& other) {
  cuda_on_host_switch(&position_, other.position_);
}

}  // namespace cuda_on_host
