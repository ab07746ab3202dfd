// Mutants of valid replies on a payload lane, as a broken or hostile ps would
// send them, from fixed seeds: a worker answers its pulls rightly or refuses
// them, and writes nowhere else.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fuzz/reply_target.h"

namespace parasol {
namespace {

// Changes up to three bytes or runs of them, most of them where lengths and
// headers are.
void Mutate(std::string& bytes, std::mt19937& random) {
  for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t end = random() % 4 == 0 ? bytes.size() : 120;
    const size_t at = random() % std::min(end, bytes.size());
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] + (random() % 2 == 0 ? 1 : -1));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 20);
        break;
      case 3:
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 30));
        break;
      default:
        bytes.insert(at, std::string(random() % 5, '\xFF') + '\x0F');
    }
    if (bytes.empty()) return;
  }
}

TEST(ReplyMutationTest, TheTargetTakesWhatIsValid) {
  for (const size_t piece_bytes : {1u, 77u, 5000u, 1000000u}) {
    size_t answers = 0, placed = 0;
    for (const std::string& reply : ReplyTarget::ValidReplies()) {
      const auto outcome = ReplyTarget::Feed(reply, piece_bytes);
      EXPECT_FALSE(outcome.is_refused);
      answers += outcome.answers;
      placed += outcome.placed;
    }
    EXPECT_EQ(answers, 8u);
    EXPECT_EQ(placed, 4u);
  }
}

TEST(ReplyMutationTest, AnInputOfTheFuzzerStandsForAValidReply) {
  const std::string reply = ReplyTarget::ValidReplies()[2];
  const auto input = ReplyTarget::InputOf(ReplyTarget::InputFor(reply));
  EXPECT_EQ(input.bytes.size(), reply.size());
  const auto outcome = ReplyTarget::Feed(input.bytes, input.piece_bytes);
  EXPECT_EQ(outcome.placed, 1u);
  EXPECT_EQ(outcome.answers, 1u);
  EXPECT_FALSE(outcome.is_refused);
}

TEST(ReplyMutationTest, MutantsAreReadAsByAReaderWithoutTargets) {
  constexpr uint32_t kMutants = 4000;
  const std::vector<std::string> valid = ReplyTarget::ValidReplies();
  int refused = 0, answered = 0, placed = 0;
  for (uint32_t seed = 0; seed < kMutants; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::string bytes = valid[seed % valid.size()];
    Mutate(bytes, random);
    const auto outcome = ReplyTarget::Feed(bytes, 1 + random() % 60000);
    refused += outcome.is_refused ? 1 : 0;
    answered += outcome.answers > 0 ? 1 : 0;
    placed += outcome.placed > 0 ? 1 : 0;
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(answered, 300);
  EXPECT_GT(placed, 300);
}

}  // namespace
}  // namespace parasol
