#ifndef PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
#define PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_

#include <cstdint>
#include <string>

namespace parasol {

// The last `max_bytes` of a file, or all of a shorter one. May begin in the
// middle of a line. Empty when the file can't be read.
std::string FileTail(const std::string& path, int64_t max_bytes);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
