// The two-tower example, as a worker without a cluster, and what `parasol
// evaluate` says of it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);
constexpr int kUsers = 200;
constexpr int kItems = 80;
constexpr int kTastes = 8;

// Four fifths of the purchases are to the user's taste. The first item of a
// taste is bought as often as the nine others together, which candidates'
// probabilities make up for.
void WritePurchases(const fs::path& path, int purchases) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> sold(kItems);
  for (int i = 0; i < purchases; ++i) {
    const int user = below(kUsers);
    const int taste = below(5) > 0 ? user % kTastes : below(kTastes);
    const int rank = below(2) == 0 ? 0 : below(kItems / kTastes);
    pairs.emplace_back(user, rank * kTastes + taste);
    ++sold[pairs.back().second];
  }
  std::ofstream file(path);
  file << "user,item,share,bought\n";
  for (const auto& [user, item] : pairs) {
    file << user << "," << item << "," << double(sold[item]) / purchases
         << ",1\n";
  }
}

// All users with half of the items, five of which are to their taste.
void WriteCandidates(const fs::path& path) {
  std::ofstream file(path);
  file << "user,item,share,bought\n";
  for (int item = 0; item < kItems / 2; ++item) {
    for (int user = 0; user < kUsers; ++user) {
      file << user << "," << item << ",1," << (user % kTastes == item % kTastes)
           << "\n";
    }
  }
}

class TwoTowerTest : public testing::Test {
 protected:
  TwoTowerTest() : directory_(fs::path(getenv("TEST_TMPDIR")) / "two_tower") {
    fs::create_directories(directory_);
    WritePurchases(directory_ / "train.csv", 10000);
    WriteCandidates(directory_ / "test.csv");
  }

  CompletedProcess Run(std::vector<std::string> argv) {
    argv[0] = fs::absolute(argv[0]);  // a test starts in its runfiles
    argv.push_back(absl::StrCat("--data_dir=", directory_.string()));
    auto run = RunSubprocess({.argv = std::move(argv)}, kLimit);
    EXPECT_OK(run.status());
    if (!run.ok()) return {};
    EXPECT_EQ(run->end.code(), 0) << run->standard_error;
    return *std::move(run);
  }

  // Trains with a worker alone and returns its last evaluation.
  nlohmann::json Train(const std::string& checkpoints) {
    Run({"worker/worker", "--job=docs/examples/purchases_two_tower.textproto",
         absl::StrCat("--checkpoint_dir=",
                      (directory_ / checkpoints).string())});
    std::ifstream lines(directory_ / checkpoints / "evaluations.jsonl");
    nlohmann::json last;
    for (std::string line; std::getline(lines, line);) {
      last = nlohmann::json::parse(line, nullptr, false);
    }
    return last;
  }

  const fs::path directory_;
};

TEST_F(TwoTowerTest, FindsWhatIsToAUsersTasteEachTimeAlike) {
  const nlohmann::json trained = Train("a");
  ASSERT_TRUE(trained.contains("score/recall_at_5")) << trained;
  // A random order has .125, .13 and .5.
  EXPECT_GT(double{trained["score/recall_at_5"]}, .7) << trained;
  EXPECT_GT(double{trained["score/ndcg_at_5"]}, .7) << trained;
  EXPECT_GT(double{trained["score/group_auc"]}, .95) << trained;
  EXPECT_TRUE(fs::exists(directory_ / "a" / "BEST"));

  const nlohmann::json again = Train("b");
  for (const char* const name : {"loss", "towers/loss", "score/recall_at_5",
                                 "score/ndcg_at_5", "score/group_auc"}) {
    EXPECT_EQ(again[name], trained[name]) << name;
  }
  const nlohmann::json evaluated = nlohmann::json::parse(
      Run({"tool/parasol", "evaluate", (directory_ / "a").string(), "--json"})
          .standard_output,
      nullptr, false);
  for (const char* const name :
       {"score/recall_at_5", "score/ndcg_at_5", "score/group_auc"}) {
    EXPECT_EQ(evaluated[name], trained[name]) << name << evaluated;
  }
}

}  // namespace
}  // namespace parasol
