// Writes the valid messages, from which fuzzing starts, into a directory.

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tests/fuzz/valid_requests.h"

int main(int argc, char** argv) {
  CHECK_EQ(argc, 2) << "usage: write_corpus DIRECTORY";
  int number = 0;
  for (const auto& request : parasol::ValidExchangeRequests()) {
    std::ofstream(absl::StrCat(argv[1], "/valid", number++), std::ios::binary)
        << '\x7F' << request.SerializeAsString();
  }
  return 0;
}
