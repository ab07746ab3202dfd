#ifndef PARASOL_THIRD_PARTY_TSAN_REAL_H_
#define PARASOL_THIRD_PARTY_TSAN_REAL_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" {

// What happened before the release of an address happened before its acquire.
void __tsan_acquire(void* address);
void __tsan_release(void* address);

void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);

}  // extern "C"

namespace parasol::tsan {

// A library's own definition of what the caller defines in front of it; the
// program ends if there is none.
template <typename Function>
Function* Real(const char* symbol) {
  void* definition = dlsym(RTLD_NEXT, symbol);
  if (definition == nullptr) {
    std::fprintf(stderr, "third_party/tsan: no library has %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(definition);
}

}  // namespace parasol::tsan

#endif  // PARASOL_THIRD_PARTY_TSAN_REAL_H_
