#ifndef PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
#define PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_

#include <cstdint>
#include <string>

namespace parasol {

// Returns the bytes of a file from offset `begin` on, but at most its last
// `max_bytes`, so the text may start in the middle of a line. Empty if the file
// can't be read.
std::string FileTail(const std::string& path, int64_t max_bytes,
                     int64_t begin = 0);

// Returns the size of the file in bytes; 0 if there is no such file.
int64_t FileEnd(const std::string& path);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_FILE_TAIL_H_
