#ifndef PARASOL_TESTS_SOURCE_TREE_H_
#define PARASOL_TESTS_SOURCE_TREE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The project's C++ sources as tests of its own rules read them.
namespace parasol {

struct SourceFile {
  std::string path;  // relative to the project's root
  std::vector<std::string> lines;

  // Returns the folder that the file lies in: "ps/dense".
  std::string folder() const;
  // Returns the first folder of the path: "ps".
  std::string top() const;
  bool is_header() const;
  // Returns true for tests, benchmarks and what only these include: files of
  // `tests` and of folders named `testing`.
  bool is_test() const;
};

// Returns all files .cc, .h, .cu and .cuh of the folders in `tops`, in the
// order of their paths. Reads the tree once for each call.
std::vector<SourceFile> ReadSourceTree(const std::vector<std::string>& tops);

// Returns the paths that `file` includes: "ml/model/model.h",
// "grpcpp/channel.h".
std::vector<std::string> IncludesOf(const SourceFile& file);

}  // namespace parasol

#endif  // PARASOL_TESTS_SOURCE_TREE_H_
