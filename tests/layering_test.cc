// The rules of ARCHITECTURE.md that a compiler does not know, checked against
// the #include lines of the whole source tree.

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

// Higher may include lower or equal; roles are equal but exclude each other.
const std::map<std::string, int> kLayer = {
    {"base", 0},      {"proto", 0},  {"ml", 1},     {"storage", 1},
    {"cluster", 2},   {"ps", 3},     {"worker", 3}, {"chief", 3},
    {"evaluator", 3}, {"deploy", 4}, {"tests", 5}};
constexpr int kRoleLayer = 3;

struct SourceFile {
  std::string path;  // relative to the root
  std::vector<std::string> lines;
  std::string folder() const { return path.substr(0, path.find('/')); }
  bool is_test() const {
    return folder() == "tests" || absl::StrContains(path, "_test.") ||
           absl::StrContains(path, "_benchmark.") ||
           absl::StrContains(path, "/testing/");
  }
};

// Bazel shows a test the tree through links: follow one to the real root.
fs::path SourceRoot() { return fs::canonical("WORKSPACE").parent_path(); }

std::vector<SourceFile> ReadTree() {
  std::vector<SourceFile> files;
  const fs::path root = SourceRoot();
  for (const auto& [folder, layer] : kLayer) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h" && extension != ".cu" &&
          extension != ".cuh") {
        continue;
      }
      SourceFile file;
      file.path = fs::relative(entry.path(), root);
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        file.lines.push_back(line);
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

const std::vector<SourceFile>& Tree() {
  static const auto* const tree = new std::vector<SourceFile>(ReadTree());
  return *tree;
}

// What `file` includes: "ml/model/model.h", "grpcpp/channel.h".
std::vector<std::string> Includes(const SourceFile& file) {
  static const std::regex include(R"re(^\s*#include\s+["<]([^">]+)[">])re");
  std::vector<std::string> included;
  for (const std::string& line : file.lines) {
    std::smatch match;
    if (std::regex_search(line, match, include)) included.push_back(match[1]);
  }
  return included;
}

// Files that include something matching `what` and whose own path does not
// match `allowed`: "path: include".
std::vector<std::string> Strangers(const std::string& what,
                                   const std::string& allowed) {
  const std::regex what_pattern(what);
  const std::regex allowed_pattern(allowed);
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (file.is_test() || std::regex_search(file.path, allowed_pattern)) {
      continue;
    }
    for (const std::string& included : Includes(file)) {
      if (std::regex_search(included, what_pattern)) {
        found.push_back(absl::StrCat(file.path, ": ", included));
      }
    }
  }
  return found;
}

TEST(LayeringTest, TheTreeIsThere) { EXPECT_THAT(Tree(), Not(IsEmpty())); }

TEST(LayeringTest, IncludesPointDown) {
  std::vector<std::string> upward;
  for (const SourceFile& file : Tree()) {
    for (const std::string& included : Includes(file)) {
      const auto layer = kLayer.find(included.substr(0, included.find('/')));
      if (layer == kLayer.end()) continue;
      const bool may = file.is_test()
                           ? kLayer.at("tests") >= layer->second
                           : kLayer.at(file.folder()) >= layer->second;
      if (!may) upward.push_back(absl::StrCat(file.path, ": ", included));
    }
  }
  EXPECT_THAT(upward, IsEmpty());
}

TEST(LayeringTest, NoRoleIncludesAnother) {
  std::vector<std::string> crossing;
  for (const SourceFile& file : Tree()) {
    if (kLayer.at(file.folder()) != kRoleLayer) continue;
    for (const std::string& included : Includes(file)) {
      const std::string folder = included.substr(0, included.find('/'));
      const auto layer = kLayer.find(folder);
      if (layer != kLayer.end() && layer->second == kRoleLayer &&
          folder != file.folder()) {
        crossing.push_back(absl::StrCat(file.path, ": ", included));
      }
    }
  }
  EXPECT_THAT(crossing, IsEmpty());
}

TEST(LayeringTest, StorageAndMlDoNotKnowEachOther) {
  EXPECT_THAT(Strangers("^storage/",
                        "^(storage|cluster|ps|worker|chief|"
                        "evaluator|deploy)/"),
              IsEmpty());
  EXPECT_THAT(Strangers("^ml/",
                        "^(ml|cluster|ps|worker|chief|evaluator|"
                        "deploy)/"),
              IsEmpty());
}

TEST(LayeringTest, OnlyRpcClientsAndServicesKnowGrpc) {
  EXPECT_THAT(Strangers(R"(^grpc(pp)?/|\.grpc\.pb\.h$)",
                        "^cluster/(rpc|client)/|_service\\.(h|cc)$|"
                        "_control\\.(h|cc)$"),
              IsEmpty());
}

TEST(LayeringTest, OnlyStorageKnowsRocksDb) {
  EXPECT_THAT(Strangers("^rocksdb/", "^storage/"), IsEmpty());
}

TEST(LayeringTest, OnlyMetricsKnowsPrometheus) {
  EXPECT_THAT(Strangers("^prometheus/", "^base/(metrics|process_stats)\\.cc$"),
              IsEmpty());
}

TEST(LayeringTest, OnlyCpuKernelsKnowOneDnn) {
  EXPECT_THAT(Strangers("dnnl", "^ml/kernel/(.*_cpu|cpu_.*|dnnl_.*)\\.(h|cc)$"),
              IsEmpty());
}

TEST(LayeringTest, OnlyCudaFilesKnowCuda) {
  EXPECT_THAT(Strangers("^cuda|^cublas|^cudnn|^nccl",
                        "^ml/kernel/(cuda_.*|.*\\.cuh?)$"),
              IsEmpty());
}

TEST(LayeringTest, TimeComesFromTheClock) {
  const std::regex time(
      R"(absl::Now\(\)|SleepFor|sleep_for|\busleep\(|system_clock::now)");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    // The benchmarks measure real time: it is what they are for.
    if (file.folder() == "base" || absl::StartsWith(file.path, "tests/bench") ||
        file.path == "tests/layering_test.cc") {
      continue;
    }
    for (const std::string& line : file.lines) {
      if (std::regex_search(line, time)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(LayeringTest, FilesAndNamesStayReadable) {
  const std::regex fog(R"(\b(class|struct) [A-Za-z]*(Manager|Helper|Utils?|)"
                       R"(Common|Impl2|V2)\b)");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (file.lines.size() > 500) {
      found.push_back(absl::StrCat(file.path, ": ", file.lines.size(),
                                   " lines, of at most 500"));
    }
    for (const std::string& line : file.lines) {
      if (std::regex_search(line, fog)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace parasol
