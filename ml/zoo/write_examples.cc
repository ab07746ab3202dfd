// Writes the zoo's models into the example jobs: --dir=docs/examples.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/process.h"
#include "ml/zoo/example_models.h"
#include "ml/zoo/model_text.h"

ABSL_FLAG(std::string, dir, "docs/examples", "Where the example jobs are.");

int main(int argc, char** argv) {
  parasol::ParseCommandLine(
      argc, argv, "Writes the zoo's models into the example jobs of --dir.");
  for (const auto& [name, model] : parasol::zoo::ExampleModels()) {
    const std::string path =
        absl::StrCat(absl::GetFlag(FLAGS_dir), "/", name, ".textproto");
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const absl::StatusOr<std::string> changed =
        parasol::zoo::WithModel(text, model);
    if (!changed.ok()) {
      std::cerr << path << ": " << changed.status().message() << "\n";
      return EXIT_FAILURE;
    }
    if (*changed != text) std::ofstream(path) << *changed;
  }
  return EXIT_SUCCESS;
}
