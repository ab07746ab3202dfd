#ifndef PARASOL_DEPLOY_TESTING_PROGRAM_FLAGS_H_
#define PARASOL_DEPLOY_TESTING_PROGRAM_FLAGS_H_

#include <set>
#include <string>

namespace parasol {

// Returns the names of the flags that a role's program lists in its --help. The
// test has the program among its data.
std::set<std::string> FlagsOfProgram(const std::string& role);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_TESTING_PROGRAM_FLAGS_H_
