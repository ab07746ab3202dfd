#include "tests/fuzz/readers/scratch_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {

ScratchFolder::ScratchFolder() {
  const std::filesystem::path memory = "/dev/shm";
  const std::filesystem::path parent =
      std::filesystem::is_directory(memory)
          ? memory
          : std::filesystem::temp_directory_path();
  path_ = (parent / "parasol_fuzz_XXXXXX").string();
  CHECK(mkdtemp(path_.data()) != nullptr) << path_;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::Write(absl::string_view name,
                                 absl::string_view bytes) const {
  const std::string path = absl::StrCat(path_, "/", name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string ScratchFolder::Read(absl::string_view name) const {
  std::ifstream file(absl::StrCat(path_, "/", name), std::ios::binary);
  CHECK(file.is_open()) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void ScratchFolder::Clear() const {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    std::filesystem::remove_all(entry.path());
  }
}

}  // namespace parasol
