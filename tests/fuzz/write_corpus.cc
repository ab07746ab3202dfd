// Writes the valid messages and replies, from which fuzzing starts, into two
// directories.

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "tests/fuzz/reply_target.h"
#include "tests/fuzz/valid_requests.h"

int main(int argc, char** argv) {
  CHECK_EQ(argc, 3) << "usage: write_corpus REQUESTS REPLIES";
  int number = 0;
  for (const auto& request : parasol::ValidExchangeRequests()) {
    std::ofstream(absl::StrCat(argv[1], "/valid", number++), std::ios::binary)
        << '\x7F' << request.SerializeAsString();
  }
  number = 0;
  for (const std::string& reply : parasol::ReplyTarget::ValidReplies()) {
    std::ofstream(absl::StrCat(argv[2], "/valid", number++), std::ios::binary)
        << parasol::ReplyTarget::InputFor(reply);
  }
  return 0;
}
