#include "cluster/rpc/keep_memory.h"

#include <malloc.h>

namespace parasol {

void KeepFreedMemory() {
  // 32 MiB is the largest threshold that glibc accepts.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 4 << 20);
}

}  // namespace parasol
