#include "deploy/local/file_tail.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace parasol {

std::string FileTail(const std::string& path, int64_t max_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const int64_t size = file.tellg();
  file.seekg(std::max<int64_t>(0, size - max_bytes));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace parasol
