#ifndef PARASOL_TESTS_FUZZ_REPLY_TARGET_H_
#define PARASOL_TESTS_FUZZ_REPLY_TARGET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// A worker that awaits the answers of four pulls on a payload lane, and
// receives arbitrary bytes there instead, as ShardLink would: dense values in
// two ranges (id 1) and in one small one (id 2), rows (id 3), and values in
// bfloat16 (id 4). Ends the process when the frames, their errors or the values
// differ from those that a reader without targets gets, or when memory is held
// after the lane is gone.
class ReplyTarget {
 public:
  struct Outcome {
    size_t frames = 0;   // whole frames
    size_t placed = 0;   // frames with a part that was received in a target
    size_t answers = 0;  // pulls that were answered with values
    // True if a length, a frame or a header was refused.
    bool is_refused = false;
  };
  // Receives `bytes`, `piece_bytes` (at least 1) at a time.
  static Outcome Feed(absl::string_view bytes, size_t piece_bytes);

  // Returns lanes' bytes that answer the pulls, in various messages.
  static std::vector<std::string> ValidReplies();

  // Returns the bytes that an input of a fuzzer stands for: an input is short,
  // and only long frames have targets. Its first byte says how the bytes come
  // and whether a length is put before them, the next two how many more bytes
  // follow.
  struct Input {
    std::string bytes;
    size_t piece_bytes = 1;
  };
  static Input InputOf(absl::string_view data);
  // Returns the input that stands for a stream with the length and the first
  // bytes of `bytes`.
  static std::string InputFor(absl::string_view bytes);
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_REPLY_TARGET_H_
