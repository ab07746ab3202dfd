#ifndef PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
#define PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_

#include <cstdint>
#include <string>

namespace parasol {

// What a file has from the offset `begin` on, but at most its last `max_bytes`:
// that may start in the middle of a line. Empty when it can't be read.
std::string FileTail(const std::string& path, int64_t max_bytes,
                     int64_t begin = 0);

// The offset behind its last byte; 0 when there is no such file.
int64_t FileEnd(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
