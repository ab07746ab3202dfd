#include "ps/dense/element_runs.h"

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

std::vector<float> Collect(const PayloadView& payload, size_t max_count) {
  ElementRuns runs(payload, sizeof(float));
  std::vector<float> floats;
  while (true) {
    const ElementRuns::Run run = runs.Next(max_count);
    if (run.count == 0) return floats;
    EXPECT_LE(run.count, max_count);
    floats.resize(floats.size() + run.count);
    std::memcpy(floats.data() + floats.size() - run.count, run.data,
                run.count * sizeof(float));
  }
}

TEST(ElementRunsTest, GivesTheSameElementsHoweverThePayloadIsCut) {
  std::vector<float> want(100);
  for (size_t i = 0; i < want.size(); ++i) want[i] = 0.37f * i;
  std::string bytes(want.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), want.data(), bytes.size());
  for (size_t piece_bytes = 1; piece_bytes < 50; ++piece_bytes) {
    for (const size_t max_count : {1, 3, 1000}) {
      SCOPED_TRACE(testing::Message() << piece_bytes << " " << max_count);
      EXPECT_EQ(Collect(ViewOf(bytes, piece_bytes), max_count), want);
    }
  }
}

TEST(ElementRunsTest, ReadsWholePiecesWhereTheyAre) {
  const std::string bytes = Floats(10, 1);
  const PayloadView payload = ViewOf(bytes);
  ElementRuns runs(payload, sizeof(float));
  const ElementRuns::Run run = runs.Next(100);
  EXPECT_EQ(run.count, 10u);
  EXPECT_EQ(static_cast<const void*>(run.data), bytes.data());
}

TEST(ElementRunsTest, PassesOverEmptyPieces) {
  const std::string bytes = Floats(2, 1);
  const absl::string_view all = bytes;
  const PayloadView payload({"", all.substr(0, 3), "", all.substr(3), ""});
  EXPECT_EQ(Collect(payload, 9), std::vector<float>({1, 1}));
}

}  // namespace
}  // namespace parasol
