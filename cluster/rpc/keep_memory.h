#ifndef PARASOL_CLUSTER_RPC_KEEP_MEMORY_H_
#define PARASOL_CLUSTER_RPC_KEEP_MEMORY_H_

namespace parasol {

// Tells malloc to keep freed memory instead of giving it back to the system.
// Receiving tensors allocates and frees large buffers all the time; by default
// each is mapped anew, and the faults of its pages cost more than everything
// else on a message's way. The process stays as large as it has ever been. Call
// it first in the main() of a process that carries tensors.
void KeepFreedMemory();

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_KEEP_MEMORY_H_
