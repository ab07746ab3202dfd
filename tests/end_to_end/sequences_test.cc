// The examples of sequences, as a worker without a cluster, beside what the
// purchases that they are trained on allow.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(4);
constexpr int kItems = 80;
constexpr int kTastes = 8;
constexpr int kSteps = 20;

// What decides the taste of four fifths of the purchases; the others are of any
// taste. Items of a taste are equally likely.
enum class Rule {
  kNewest,  // the purchase before
  kAny,     // any one of the purchases before
};

// A purchase and the ones before it, the newest one first.
struct Purchase {
  std::vector<int> history;
  int item = 0;
};

class Purchases {
 public:
  Purchases(Rule rule, int seed) : rule_(rule), random_(seed) {}

  Purchase Draw() {
    Purchase purchase;
    // Runs of one taste, so that a history has several tastes in an order.
    int taste = Below(kTastes);
    const int steps = 5 + Below(kSteps - 4);
    for (int i = 0; i < steps; ++i) {
      if (Below(5) == 0) taste = Below(kTastes);
      purchase.history.push_back(ItemOf(taste));
    }
    const int decides =
        rule_ == Rule::kNewest ? 0 : Below(static_cast<int>(steps));
    taste = Below(5) > 0 ? purchase.history[decides] % kTastes : Below(kTastes);
    purchase.item = ItemOf(taste);
    return purchase;
  }

  // The probability that an item is the next one, as the rule has it.
  double ProbabilityOf(int item, const std::vector<int>& history) const {
    double share = 0;
    if (rule_ == Rule::kNewest) {
      share = item % kTastes == history[0] % kTastes ? 1 : 0;
    } else {
      for (const int other : history) {
        share += other % kTastes == item % kTastes ? 1.0 / history.size() : 0;
      }
    }
    return (.8 * share + .2 / kTastes) / (kItems / kTastes);
  }

  int Below(int n) { return static_cast<int>(random_() % n); }

 private:
  int ItemOf(int taste) { return Below(kItems / kTastes) * kTastes + taste; }

  const Rule rule_;
  std::mt19937 random_;
};

void WriteLine(int event, const Purchase& purchase, int item,
               std::ofstream& file) {
  file << event << "," << absl::StrJoin(purchase.history, "|") << "," << item
       << "," << (item == purchase.item) << "\n";
}

constexpr char kHeader[] = "event,history,item,bought\n";

// Each purchase, and `others` items at random that were not bought.
void WriteTraining(const fs::path& path, Purchases& purchases, int count,
                   int others) {
  std::ofstream file(path);
  file << kHeader;
  for (int event = 0; event < count; ++event) {
    const Purchase purchase = purchases.Draw();
    WriteLine(event, purchase, purchase.item, file);
    for (int i = 0; i < others; ++i) {
      int item = purchases.Below(kItems);
      if (item == purchase.item) item = (item + 1) % kItems;
      WriteLine(event, purchase, item, file);
    }
  }
}

// What the best of all models has: it knows the rule.
struct Reachable {
  double auc = 0;
  double recall_at_10 = 0;
};

// Writes events with all items, and returns what is reachable on them.
Reachable WriteCandidates(const fs::path& path, Purchases& purchases,
                          int count) {
  std::ofstream file(path);
  file << kHeader;
  std::vector<std::pair<double, bool>> scores;
  double found = 0;
  for (int event = 0; event < count; ++event) {
    const Purchase purchase = purchases.Draw();
    std::vector<double> of_event;
    for (int item = 0; item < kItems; ++item) {
      WriteLine(event, purchase, item, file);
      of_event.push_back(purchases.ProbabilityOf(item, purchase.history));
      scores.emplace_back(of_event.back(), item == purchase.item);
    }
    const double own = of_event[purchase.item];
    const auto above = std::count_if(of_event.begin(), of_event.end(),
                                     [own](double p) { return p > own; });
    const auto equal = std::count(of_event.begin(), of_event.end(), own);
    found += std::clamp((10.0 - above) / equal, 0.0, 1.0);
  }
  // The share of pairs of a bought and another line in the right order.
  std::sort(scores.begin(), scores.end());
  double pairs = 0, others = 0, bought = 0;
  for (size_t i = 0; i < scores.size();) {
    double of_others = 0, of_bought = 0;
    const double score = scores[i].first;
    for (; i < scores.size() && scores[i].first == score; ++i) {
      ++(scores[i].second ? of_bought : of_others);
    }
    pairs += of_bought * (others + of_others / 2);
    others += of_others;
    bought += of_bought;
  }
  return {.auc = pairs / (others * bought), .recall_at_10 = found / count};
}

class SequencesTest : public testing::Test {
 protected:
  SequencesTest() : directory_(fs::path(getenv("TEST_TMPDIR")) / "sequences") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  std::string Run(std::vector<std::string> argv) {
    argv[0] = fs::absolute(argv[0]);  // a test starts in its runfiles
    argv.push_back(absl::StrCat("--data_dir=", directory_.string()));
    auto run = RunSubprocess({.argv = std::move(argv)}, kLimit);
    EXPECT_OK(run.status());
    if (!run.ok()) return "";
    EXPECT_EQ(run->end.code(), 0) << run->standard_error;
    return run->standard_output;
  }

  // Trains with a worker alone and returns its last evaluation.
  nlohmann::json Train(const std::string& example,
                       const std::string& checkpoints) {
    Run({"worker/worker",
         absl::StrCat("--job=docs/examples/", example, ".textproto"),
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

TEST_F(SequencesTest, DinFindsWhatAnyOfThePurchasesBeforeLeadsTo) {
  Purchases purchases(Rule::kAny, 1);
  WriteTraining(directory_ / "train.csv", purchases, 8000, /*others=*/4);
  const Reachable best =
      WriteCandidates(directory_ / "test.csv", purchases, 300);
  const nlohmann::json trained = Train("purchases_din", "a");
  ASSERT_TRUE(trained.contains("auc")) << trained;
  EXPECT_GT(double{trained["auc"]}, .95 * best.auc) << trained;
  const nlohmann::json evaluated = nlohmann::json::parse(
      Run({"tool/parasol", "evaluate", (directory_ / "a").string(), "--json"}),
      nullptr, false);
  EXPECT_EQ(evaluated["auc"], trained["auc"]) << evaluated;
}

TEST_F(SequencesTest, SasRecFindsWhatTheNewestPurchaseLeadsToEachTimeAlike) {
  Purchases purchases(Rule::kNewest, 2);
  WriteTraining(directory_ / "train.csv", purchases, 20000, /*others=*/0);
  const Reachable best =
      WriteCandidates(directory_ / "test.csv", purchases, 300);
  const nlohmann::json trained = Train("purchases_sasrec", "a");
  ASSERT_TRUE(trained.contains("score/recall_at_10")) << trained;
  EXPECT_GT(double{trained["score/recall_at_10"]}, .9 * best.recall_at_10)
      << trained;
  const nlohmann::json again = Train("purchases_sasrec", "b");
  for (const char* const name : {"loss", "score/recall_at_10"}) {
    EXPECT_EQ(again[name], trained[name]) << name;
  }
}

}  // namespace
}  // namespace parasol
