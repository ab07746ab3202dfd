// The rules of ARCHITECTURE.md that a compiler does not know, checked against
// the #include lines of the whole source tree.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "re2/re2.h"
#include "tests/source_tree.h"

namespace parasol {
namespace {

using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Not;

// The floors of the project. A file may include files of its own floor and of
// lower ones.
const std::map<std::string, int> kLayer = {
    {"base", 0},    {"proto", 0},       {"ml", 1},         {"storage", 1},
    {"cluster", 2}, {"coordinator", 3}, {"parameters", 3}, {"ps", 4},
    {"worker", 4},  {"chief", 4},       {"evaluator", 4},  {"serving", 4},
    {"deploy", 4},  {"loop", 5},        {"tool", 5},       {"tests", 6}};

// Reads NumPy's arrays, for data sets, with what reads them for `import`:
// storage/tensor_files knows neither checkpoints nor models.
constexpr char kReadsArrays[] = "^ml/input/file/array_files\\.cc$";

// A role is a binary of its own: nothing but tests looks into one, and `loop`,
// whose programs are workers with a loop of their own, or lead them.
constexpr char kRole[] = "^(ps|worker|chief|evaluator)/";

// The floors inside of these folders, each for itself, in the same sense.
const std::map<std::string, int> kFloor = {{"cluster/cluster_spec", 0},
                                           {"cluster/job/followed", 0},
                                           {"cluster/object", 0},
                                           {"cluster/job/syntax", 0},
                                           {"cluster/job", 1},
                                           {"cluster/job/task", 2},
                                           {"cluster/placement", 0},
                                           {"cluster/rows", 1},
                                           {"cluster/replica_sum", 2},
                                           {"cluster/check", 2},
                                           {"cluster/checkpoint", 2},
                                           {"cluster/checkpoint/model", 3},
                                           {"cluster/progress", 0},
                                           {"cluster/trust", 0},
                                           {"cluster/rpc", 0},
                                           {"cluster/rights", 1},
                                           {"cluster/payload_lane", 1},
                                           {"cluster/inspection", 1},
                                           {"cluster/client", 3},
                                           {"cluster/hook", 4},
                                           {"cluster/collective/plan", 0},
                                           {"cluster/collective/custom", 1},
                                           {"cluster/collective", 2},
                                           {"ml/custom", 0},
                                           {"ml/compression", 0},
                                           {"ml/device", 0},
                                           {"ml/initializer", 0},
                                           {"ml/optimizer/rule", 0},
                                           {"ml/optimizer", 0},
                                           {"ml/optimizer/device", 1},
                                           {"ml/optimizer/assigned", 1},
                                           {"ml/builder", 0},
                                           {"ml/kernel", 1},
                                           {"ml/kernel/image", 2},
                                           {"ml/layer/field", 2},
                                           {"ml/tape", 2},
                                           {"ml/kernel/loss", 2},
                                           {"ml/kernel/interaction", 2},
                                           {"ml/kernel/normalization", 2},
                                           {"ml/kernel/sequence", 2},
                                           {"ml/layer", 3},
                                           {"ml/layer/convolution", 4},
                                           {"ml/layer/interaction", 4},
                                           {"ml/layer/normalization", 4},
                                           {"ml/layer/sequence", 4},
                                           {"ml/layer/kinds", 5},
                                           {"ml/input/feature", 4},
                                           {"ml/input/file", 4},
                                           {"ml/input/library", 4},
                                           {"ml/input/object", 4},
                                           {"ml/input/web", 3},
                                           {"ml/input/arrow", 5},
                                           {"ml/input/record", 5},
                                           {"ml/input/format", 6},
                                           {"ml/input", 6},
                                           {"ml/input/topic", 7},
                                           {"ml/loss", 6},
                                           {"ml/metric", 7},
                                           {"ml/model/memory", 1},
                                           {"ml/model", 8},
                                           {"ml/model/function", 9},
                                           {"ml/tape/model", 10},
                                           {"ml/zoo", 8},
                                           {"ml/evaluation", 9},
                                           {"ps/operation", 0},
                                           {"ps/step", 1},
                                           {"ps/journal", 1},
                                           {"ps/dense", 2},
                                           {"ps/sparse", 3},
                                           {"ps/shard", 4},
                                           {"ps/standby", 5},
                                           {"ps/exchange", 6},
                                           {"ps", 7},
                                           {"worker/shown", 0},
                                           {"worker/step", 0},
                                           {"worker/followed", 1},
                                           {"worker/store/table", 0},
                                           {"worker/store", 1},
                                           {"worker/group/state", 2},
                                           {"worker/group", 3},
                                           {"worker", 4},
                                           {"loop/peers", 0},
                                           {"loop/core", 1},
                                           {"loop", 2},
                                           {"tool/check", 0},
                                           {"tool/checkpoint", 0},
                                           {"tool/first_job", 0},
                                           {"tool/flag", 0},
                                           {"tool/prediction", 0},
                                           {"tool/status", 0},
                                           {"tool/exchange", 1},
                                           {"tool/exchange/onnx", 2},
                                           {"tool/publish", 2},
                                           {"tool", 3}};
constexpr char kWithFloors[] = "^(cluster|loop|ml|ps|tool|worker)/";

// More files than this in one folder can't be taken in at a glance. Folders
// with more are listed with what they have; a number may fall, and is lowered
// here when it has.
constexpr int kMostFilesPerFolder = 60;
const std::map<std::string, int> kMoreFiles = {
    {"base", 64},     {"coordinator", 62}, {"ml/input/format", 62},
    {"ml/layer", 61}, {"ml/model", 63},    {"ml/optimizer", 64},
    {"storage", 66}};

// Files with more lines are cut, as a rule where classes are: tests have only
// cases to be cut at.
constexpr size_t kMostLines = 500;
constexpr size_t kMostLinesOfTest = 700;

const std::vector<SourceFile>& Tree() {
  static const auto* const tree = [] {
    std::vector<std::string> tops;
    for (const auto& [top, layer] : kLayer) tops.push_back(top);
    return new std::vector<SourceFile>(ReadSourceTree(tops));
  }();
  return *tree;
}

// Returns "ml/model" of "ml/model/model.h".
std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// Returns the files, tests apart, that include something matching `what` and
// whose own path does not match `allowed`: "path: include".
std::vector<std::string> Strangers(const std::string& what,
                                   const std::string& allowed) {
  const RE2 what_pattern(what);
  const RE2 allowed_pattern(allowed);
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (file.is_test() || RE2::PartialMatch(file.path, allowed_pattern)) {
      continue;
    }
    for (const std::string& included : IncludesOf(file)) {
      if (RE2::PartialMatch(included, what_pattern)) {
        found.push_back(absl::StrCat(file.path, ": ", included));
      }
    }
  }
  return found;
}

TEST(LayeringTest, TheTreeIsThere) { EXPECT_THAT(Tree(), Not(IsEmpty())); }

TEST(LayeringTest, IncludesPointDown) {
  std::vector<std::string> upward;
  for (const SourceFile& file : Tree()) {
    for (const std::string& included : IncludesOf(file)) {
      const auto layer = kLayer.find(included.substr(0, included.find('/')));
      if (layer == kLayer.end()) continue;
      const bool may = file.is_test() ? kLayer.at("tests") >= layer->second
                                      : kLayer.at(file.top()) >= layer->second;
      if (!may) upward.push_back(absl::StrCat(file.path, ": ", included));
    }
  }
  EXPECT_THAT(upward, IsEmpty());
}

TEST(LayeringTest, IncludesPointDownInsideFolders) {
  const RE2 with_floors(kWithFloors);
  std::vector<std::string> upward;
  for (const SourceFile& file : Tree()) {
    if (file.is_test() || !RE2::PartialMatch(file.path, with_floors)) continue;
    const auto floor = kFloor.find(file.folder());
    if (floor == kFloor.end()) {
      upward.push_back(absl::StrCat(file.path, ": kFloor has no such folder"));
      continue;
    }
    for (const std::string& included : IncludesOf(file)) {
      const auto below = kFloor.find(FolderOf(included));
      if (below != kFloor.end() && below->second > floor->second &&
          absl::StartsWith(included, file.top() + "/")) {
        upward.push_back(absl::StrCat(file.path, ": ", included));
      }
    }
  }
  EXPECT_THAT(upward, IsEmpty());
}

TEST(LayeringTest, FoldersIncludeEachOtherInNoCircle) {
  std::map<std::string, std::set<std::string>> uses;
  for (const SourceFile& file : Tree()) {
    if (file.is_test()) continue;
    for (const std::string& included : IncludesOf(file)) {
      const std::string folder = FolderOf(included);
      if (folder != file.folder()) uses[file.folder()].insert(folder);
    }
  }
  // Takes away folders that use none that is left; a circle stays.
  for (bool progress = true; progress;) {
    progress = false;
    for (auto user = uses.begin(); user != uses.end();) {
      const bool waits = std::any_of(
          user->second.begin(), user->second.end(),
          [&](const std::string& used) { return uses.contains(used); });
      progress |= !waits;
      user = waits ? std::next(user) : uses.erase(user);
    }
  }
  EXPECT_THAT(uses, IsEmpty());
}

TEST(LayeringTest, OnlyTestsIncludeWhatIsForTesting) {
  EXPECT_THAT(Strangers("/testing/|^tests/|_matchers\\.h$|/fake_",
                        "^base/status_matchers\\.h$"),
              IsEmpty());
}

TEST(LayeringTest, FakesAndFixturesLieInFoldersForTesting) {
  const RE2 support(
      R"(/(fake_[a-z_]*|[a-z_]*_(fixture|testing|test_base))\.(h|cc)$)");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (file.top() == "tests" || file.top() == "base") continue;
    if (RE2::PartialMatch(file.path, support) &&
        !absl::StrContains(file.path, "/testing/")) {
      found.push_back(file.path);
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(LayeringTest, NoFolderHasMoreFilesThanAReaderTakesIn) {
  std::map<std::string, int> files;
  for (const SourceFile& file : Tree()) ++files[file.folder()];
  for (const auto& [folder, count] : files) {
    const auto more = kMoreFiles.find(folder);
    EXPECT_LE(count,
              more == kMoreFiles.end() ? kMostFilesPerFolder : more->second)
        << folder;
  }
}

TEST(LayeringTest, NobodyButTestsIncludesARole) {
  const RE2 role(kRole);
  std::vector<std::string> crossing;
  for (const SourceFile& file : Tree()) {
    if (file.top() == "tests") continue;
    for (const std::string& included : IncludesOf(file)) {
      if (file.top() == "loop" && (absl::StartsWith(included, "worker/") ||
                                   included == "chief/chief_task.h")) {
        continue;
      }
      if (RE2::PartialMatch(included, role) &&
          !absl::StartsWith(included, file.top() + "/")) {
        crossing.push_back(absl::StrCat(file.path, ": ", included));
      }
    }
  }
  EXPECT_THAT(crossing, IsEmpty());
}

TEST(LayeringTest, StorageAndMlDoNotKnowEachOther) {
  const std::string above =
      "^(storage|cluster|coordinator|parameters|ps|worker|chief|evaluator|"
      "serving|deploy|loop|tool)/";
  EXPECT_THAT(Strangers("^storage/", absl::StrCat(above, "|", kReadsArrays)),
              IsEmpty());
  EXPECT_THAT(Strangers("^storage/[^/]*$", above), IsEmpty());
  EXPECT_THAT(
      Strangers("^ml/",
                "^(ml|cluster|coordinator|parameters|ps|worker|chief|evaluator|"
                "serving|deploy|loop|tool)/"),
      IsEmpty());
}

// Returns the classes and enumerations of `file` that other files can name,
// with their namespaces: "parasol::zoo::Task".
std::vector<std::string> TypesOf(const SourceFile& file) {
  static const RE2 space("^namespace ?([A-Za-z_:]*) ?\\{");
  static const RE2 type(
      "^(?:struct|class|enum class) (?:ABSL_[A-Z_]+ |alignas\\(.*\\) )?"
      "([A-Z][A-Za-z0-9]*)(?: final)?(?: :.*)?(?: \\{.*)?$");
  std::vector<std::string> spaces;
  std::vector<std::string> types;
  for (const std::string& line : file.lines) {
    std::string name;
    if (RE2::PartialMatch(line, space, &name)) {
      spaces.push_back(name);
    } else if (absl::StartsWith(line, "}  // namespace") && !spaces.empty()) {
      spaces.pop_back();
    } else if (!absl::c_linear_search(spaces, "") &&
               RE2::FullMatch(line, type, &name)) {
      types.push_back(absl::StrCat(absl::StrJoin(spaces, "::"), "::", name));
    }
  }
  return types;
}

// A program that links two classes of one name takes functions of one for the
// other's, as std::vector's: no compiler or linker says so.
TEST(LayeringTest, NoTwoFilesDefineATypeOfOneName) {
  std::map<std::string, std::string> first;
  std::vector<std::string> twice;
  for (const SourceFile& file : Tree()) {
    for (const std::string& type : TypesOf(file)) {
      const auto [other, is_new] = first.emplace(type, file.path);
      if (!is_new && other->second != file.path) {
        twice.push_back(
            absl::StrCat(type, ": ", other->second, ", ", file.path));
      }
    }
  }
  EXPECT_THAT(first.size(), Ge(700));
  EXPECT_THAT(twice, IsEmpty());
}

// tests/sanitize thread_safety checks what a mutex guards; the standard
// library's mutexes say nothing of what they guard.
TEST(LayeringTest, MutexesAreAbseils) {
  const RE2 other(
      "\\bstd::(recursive_|shared_|timed_)*mutex\\b|"
      "\\bstd::(lock_guard|unique_lock|scoped_lock|shared_lock)\\b");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    for (const std::string& line : file.lines) {
      if (RE2::PartialMatch(line, other)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

// Abseil's waits go by the time of day, which a program mends at their ends
// alone (base/alarm_thread.h). Clock's go by the monotonic clock.
TEST(LayeringTest, WaitsWithATimeoutAreClocks) {
  const RE2 abseils(
      "mu_?(->|\\.)(Reader)?(Await|LockWhen)With(Timeout|Deadline)\\(|"
      "Wait(ForNotification)?With(Timeout|Deadline)\\(");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (file.path == "base/clock.cc" || file.top() == "tests" ||
        file.path == "cluster/collective/work_turns.cc" ||
        file.top() == "third_party" || absl::EndsWith(file.path, "_test.cc") ||
        absl::EndsWith(file.path, "_benchmark.cc") ||
        absl::StrContains(file.path, "/testing/")) {
      continue;
    }
    for (const std::string& line : file.lines) {
      if (RE2::PartialMatch(line, abseils)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(LayeringTest, OnlyRpcClientsAndServicesKnowGrpc) {
  EXPECT_THAT(
      Strangers(
          R"(^grpc(pp)?/|\.grpc\.pb\.h$)",
          "^cluster/(rpc|client|payload_lane)/|^cluster/trust/trust\\.cc$|"
          "^cluster/rights/checked_call.h$|^parameters/client/|"
          "_service\\.(h|cc)$|"
          "_control\\.(h|cc)$"),
      IsEmpty());
}

// A test of a core is to see no gRPC, not even through a fixture.
TEST(LayeringTest, FixturesThatKnowGrpcLieBesideServices) {
  const RE2 grpc(R"(^grpc(pp)?/|\.grpc\.pb\.h$)");
  const RE2 allowed(
      "^(tests|ps/exchange|parameters/client|"
      "cluster/(rpc|payload_lane))/");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    if (!absl::StrContains(file.path, "/testing/") ||
        RE2::PartialMatch(file.path, allowed)) {
      continue;
    }
    for (const std::string& included : IncludesOf(file)) {
      if (RE2::PartialMatch(included, grpc)) found.push_back(file.path);
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(LayeringTest, OnlyStorageKnowsRocksDb) {
  EXPECT_THAT(Strangers("^rocksdb/", "^storage/"), IsEmpty());
}

TEST(LayeringTest, OnlyPublishedVersionsKnowZstd) {
  EXPECT_THAT(Strangers("^zstd", "^tool/publish/"), IsEmpty());
}

TEST(LayeringTest, OnlyTopicsKnowLibrdkafka) {
  EXPECT_THAT(Strangers("^librdkafka/", "^ml/input/topic/"), IsEmpty());
}

TEST(LayeringTest, OnlyMetricsKnowsPrometheus) {
  EXPECT_THAT(Strangers("^prometheus/", "^base/(metrics|process_stats)\\.cc$"),
              IsEmpty());
}

TEST(LayeringTest, OnlyTheHttpServerKnowsCivetweb) {
  EXPECT_THAT(Strangers("^civetweb", "^serving/http_server\\.cc$"), IsEmpty());
}

TEST(LayeringTest, OnlyTrustKnowsOpenSsl) {
  EXPECT_THAT(Strangers("^openssl/", "^cluster/trust/"), IsEmpty());
}

TEST(LayeringTest, OnlyTheChiefsPostsAndFilesOfWebServersKnowCurl) {
  EXPECT_THAT(
      Strangers("^curl/", "^chief/kubeflow/https_post\\.cc$|^ml/input/web/"),
      IsEmpty());
}

TEST(LayeringTest, OnlyCpuKernelsKnowOneDnn) {
  EXPECT_THAT(
      Strangers("dnnl", "^ml/(device/(cpu|dnnl)_.*|kernel/.*_cpu)\\.(h|cc)$"),
      IsEmpty());
}

TEST(LayeringTest, OnlyCudaFilesKnowCuda) {
  EXPECT_THAT(Strangers("^cuda|^cublas|^cudnn|^nccl",
                        "^ml/(device/cuda_.*|(kernel|optimizer)/.*\\.cuh?)$"),
              IsEmpty());
}

TEST(LayeringTest, TimeComesFromTheClock) {
  const RE2 time(
      R"(absl::Now\(\)|SleepFor|sleep_for|\busleep\(|system_clock::now)");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    // The benchmarks measure real time: it is what they are for.
    if (file.top() == "base" || absl::StartsWith(file.path, "tests/bench") ||
        file.path == "tests/layering_test.cc") {
      continue;
    }
    for (const std::string& line : file.lines) {
      if (RE2::PartialMatch(line, time)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

TEST(LayeringTest, FilesAndNamesStayReadable) {
  const RE2 fog(R"(\b(class|struct) [A-Za-z]*(Manager|Helper|Utils?|)"
                R"(Common|Impl2|V2)\b)");
  std::vector<std::string> found;
  for (const SourceFile& file : Tree()) {
    EXPECT_LE(file.lines.size(), file.is_test() ? kMostLinesOfTest : kMostLines)
        << file.path;
    for (const std::string& line : file.lines) {
      if (RE2::PartialMatch(line, fog)) {
        found.push_back(absl::StrCat(file.path, ": ", line));
      }
    }
  }
  EXPECT_THAT(found, IsEmpty());
}

}  // namespace
}  // namespace parasol
