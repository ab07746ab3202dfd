#include "deploy/local/file_tail.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/status/statusor.h"
#include "base/uri/uri_path.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr size_t kMostOfStore = size_t{64} << 20;

}  // namespace

std::string FileTail(const std::string& path, int64_t max_bytes,
                     int64_t begin) {
  if (IsUri(path)) {
    const absl::StatusOr<std::string> bytes = ReadFile(path, kMostOfStore);
    if (!bytes.ok()) return "";
    const auto size = static_cast<int64_t>(bytes->size());
    return bytes->substr(std::max(std::min(begin, size), size - max_bytes));
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const int64_t size = file.tellg();
  file.seekg(std::max(std::min(begin, size), size - max_bytes));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int64_t FileEnd(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace parasol
