// Writes the inputs from which fuzzing starts, FOLDER/TARGET/seed0 and so on,
// and prints the targets' names.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tests/fuzz/readers/fuzz_target.h"

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2) << "usage: write_corpus FOLDER";
  for (const parasol::FuzzTarget& target : parasol::FuzzTargets()) {
    const std::string folder = absl::StrCat(argv[1], "/", target.name);
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : target.seeds()) {
      std::ofstream(absl::StrCat(folder, "/seed", number++), std::ios::binary)
          << seed;
    }
    std::cout << target.name << "\n";
  }
  return 0;
}
