#ifndef PARASOL_LOOP_PEERS_ENDED_PROGRAM_H_
#define PARASOL_LOOP_PEERS_ENDED_PROGRAM_H_

#include <cstdint>
#include <string>

#include "worker/store/parameter_store.h"

namespace parasol {

// Returns true if a program that ends with `iterations` has nothing left to do:
// the newest checkpoint in `directory` is its last one, which is written when
// all processes have come to their end. Gives `store` the values then, and says
// so in the log. A checkpoint of other variables is no program's.
bool LoadEndedProgram(const std::string& directory, int64_t iterations,
                      ParameterStore& store);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_ENDED_PROGRAM_H_
