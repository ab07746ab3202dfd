#include "tests/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "re2/re2.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// Bazel shows a test the tree through links: the root is what one points to.
fs::path SourceRoot() { return fs::canonical("WORKSPACE").parent_path(); }

bool IsSource(const fs::path& path) {
  const std::string extension = path.extension();
  return extension == ".cc" || extension == ".h" || extension == ".cu" ||
         extension == ".cuh";
}

}  // namespace

std::string SourceFile::folder() const {
  return path.substr(0, path.rfind('/'));
}

std::string SourceFile::top() const { return path.substr(0, path.find('/')); }

bool SourceFile::is_header() const {
  return absl::EndsWith(path, ".h") || absl::EndsWith(path, ".cuh");
}

bool SourceFile::is_test() const {
  return top() == "tests" || absl::StrContains(path, "_test.") ||
         absl::StrContains(path, "_benchmark.") ||
         absl::StrContains(path, "/testing/");
}

std::vector<SourceFile> ReadSourceTree(const std::vector<std::string>& tops) {
  std::vector<SourceFile> files;
  const fs::path root = SourceRoot();
  for (const std::string& top : tops) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (!IsSource(entry.path())) continue;
      SourceFile file;
      file.path = fs::relative(entry.path(), root);
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        file.lines.push_back(line);
      }
      files.push_back(std::move(file));
    }
  }
  std::sort(
      files.begin(), files.end(),
      [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> IncludesOf(const SourceFile& file) {
  static const RE2 include(R"re(^\s*#include\s+["<]([^">]+)[">])re");
  std::vector<std::string> included;
  for (const std::string& line : file.lines) {
    std::string name;
    if (RE2::PartialMatch(line, include, &name)) included.push_back(name);
  }
  return included;
}

}  // namespace parasol
