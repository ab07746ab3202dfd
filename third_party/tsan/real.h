#ifndef PARASOL_THIRD_PARTY_TSAN_REAL_H_
#define PARASOL_THIRD_PARTY_TSAN_REAL_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

extern "C" {

// Tell ThreadSanitizer that everything before the release of an address happens
// before the acquire of that address.
void __tsan_acquire(void* address);
void __tsan_release(void* address);

void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);

}  // extern "C"

namespace parasol::tsan {

// Returns a library's own definition of the function `symbol`, which the caller
// defines in front of it. Ends the program if there is none.
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
