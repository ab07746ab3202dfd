// Every target with its seeds, and with mutants of them from fixed numbers: a
// short look at what tests/fuzz/run does for minutes.

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fuzz/readers/fuzz_target.h"

namespace parasol {
namespace {

constexpr int kMutantsOfASeed = 200;

std::string Mutant(std::string bytes, const std::string& other,
                   std::mt19937& random) {
  for (int changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, random() % 8);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at / 2, random() % 32));
        break;
      case 3:
        bytes.insert(at, random() % 8, '\xFF');
        break;
      case 4:
        bytes.insert(at, other.substr(random() % (other.size() + 1), 32));
        break;
      default:
        if (!bytes.empty()) bytes[at] = static_cast<char>(random());
    }
  }
  return bytes;
}

TEST(FuzzTargetsTest, EachHasANameOfItsOwnAndSeeds) {
  std::set<std::string> names;
  for (const FuzzTarget& target : FuzzTargets()) {
    EXPECT_TRUE(names.insert(target.name).second) << target.name;
    EXPECT_FALSE(target.seeds().empty()) << target.name;
  }
}

class TargetTest : public testing::TestWithParam<FuzzTarget> {};

TEST_P(TargetTest, SeedsAndMutantsOfThemEndNoProcess) {
  const std::vector<std::string> seeds = GetParam().seeds();
  std::mt19937 random(1);
  GetParam().feed("");
  for (const std::string& seed : seeds) {
    GetParam().feed(seed);
    for (int i = 0; i < kMutantsOfASeed; ++i) {
      const std::string& other = seeds[random() % seeds.size()];
      GetParam().feed(Mutant(seed, other, random));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TargetTest, testing::ValuesIn(FuzzTargets()),
                         [](const testing::TestParamInfo<FuzzTarget>& target) {
                           return target.param.name;
                         });

}  // namespace
}  // namespace parasol
