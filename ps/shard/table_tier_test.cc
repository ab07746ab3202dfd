// A shard with a table that is larger than its memory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_tier.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 64;
constexpr uint64_t kRows = 120000;  // 32 MB
constexpr uint64_t kRowsOfPush = 6000;

wire::LoadRequest TieredOrder() {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.set_num_shards(1);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(kWidth);
  table.mutable_initializer()->mutable_constant()->set_value(10);
  // 5 MB of rows beside what is on its way to the disk.
  table.mutable_tier()->set_memory_bytes(
      RowTier::kSegmentsInMemory * RowTierOptions().segment_bytes + (5 << 20));
  return order;
}

std::vector<uint64_t> IdsFrom(uint64_t first, uint64_t count) {
  std::vector<uint64_t> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::string BytesOfIds(const std::vector<uint64_t>& ids) {
  return std::string(reinterpret_cast<const char*>(ids.data()),
                     ids.size() * sizeof(uint64_t));
}

// Returns what a metric of the table shows.
double Shown(const MetricsRegistry& registry, const std::string& metric) {
  const std::string text = registry.Text();
  const std::string name =
      absl::StrCat("\nparasol_ps_table_", metric, "{table=\"t\"} ");
  const size_t found = text.find(name);
  EXPECT_NE(found, std::string::npos) << metric;
  return std::stod(text.substr(found + name.size()));
}

// Takes 1 from each element of all rows.
void PushToAll(ParameterShard& shard, uint64_t& sequence) {
  const std::string gradients = Floats(kRowsOfPush * kWidth, 1);
  for (uint64_t first = 0; first < kRows; first += kRowsOfPush) {
    const std::string ids = BytesOfIds(IdsFrom(first, kRowsOfPush));
    wire::RowPush push;
    push.set_sequence(++sequence);
    push.set_rows(kRowsOfPush);
    PendingResult result;
    shard.Execute(/*worker_incarnation=*/1, OperationOf(push),
                  {{ViewOf(ids), ViewOf(gradients)}}, result.Done());
    ASSERT_OK(result.Get());
  }
}

absl::StatusOr<std::vector<float>> PullRows(ParameterShard& shard,
                                            uint64_t first) {
  const std::string ids = BytesOfIds(IdsFrom(first, kRowsOfPush));
  wire::RowPull pull;
  pull.set_rows(kRowsOfPush);
  PendingResult result;
  shard.Execute(/*worker_incarnation=*/2, OperationOf(pull), {{ViewOf(ids)}},
                result.Done());
  const auto answer = result.Get();
  if (!answer.ok()) return answer.status();
  return FloatsOf(answer->payloads);
}

bool AllAre(float value, const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [value](float other) { return other == value; });
}

void ExpectAll(ParameterShard& shard, float value) {
  for (uint64_t first = 0; first < kRows; first += kRowsOfPush) {
    ASSERT_OK_AND_ASSIGN(const std::vector<float> values,
                         PullRows(shard, first));
    ASSERT_TRUE(AllAre(value, values)) << "rows from " << first << " on";
  }
}

// Overwrites the files of tiers that this process has open.
void DamageTiers() {
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), error).string();
    if (error || !absl::StrContains(target, "parasol-tier-")) continue;
    const int file = open(entry.path().c_str(), O_WRONLY);
    ASSERT_GE(file, 0);
    const std::string zeros(1 << 20, 0);
    const off_t end = lseek(file, 0, SEEK_END);
    for (off_t offset = 0; offset < end; offset += zeros.size()) {
      ASSERT_GT(pwrite(file, zeros.data(), zeros.size(), offset), 0);
    }
    close(file);
  }
}

TEST(TableTierTest, ACheckpointHasAllRowsAndIsLoadedIntoLittleMemory) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/tier");
  std::filesystem::remove_all(directory);
  CheckpointStore store = *CheckpointStore::OpenForWriting(directory);
  const std::string working = *store.Begin(1);
  wire::LoadRequest order = TieredOrder();
  MetricsRegistry registry;
  auto shard = *LoadShard(order, {.metrics = &registry});
  uint64_t sequence = 0;
  PushToAll(*shard, sequence);
  PushToAll(*shard, sequence);
  EXPECT_EQ(Shown(registry, "rows"), kRows);
  EXPECT_GT(Shown(registry, "rows_on_disk"), .8 * kRows);
  EXPECT_GT(Shown(registry, "disk_bytes"), 16 << 20);
  EXPECT_EQ(Shown(registry, "lookups_total"), 2 * kRows);
  EXPECT_GT(Shown(registry, "disk_reads_total"), .2 * kRows);

  ShardSnapshot snapshot = shard->TakeSnapshot(/*stays=*/false, {});
  PushToAll(*shard, sequence);
  durable::CheckpointManifest manifest;
  manifest.set_run_id("run");
  manifest.set_global_step(1);
  durable::CheckpointTable& table = *manifest.add_table();
  table.set_name("t");
  table.set_width(kWidth);
  const auto file =
      WriteShard(std::move(snapshot), 0, 1, absl::StrCat(working, "/1.sst"));
  ASSERT_OK(file);
  *manifest.add_file() = *file;
  ASSERT_OK(store.Commit(working, manifest));
  ExpectAll(*shard, 7);

  shard.reset();
  order.set_checkpoint(store.PathOf(1));
  MetricsRegistry registry_of_successor;
  const auto restored = LoadShard(order, {.metrics = &registry_of_successor});
  ASSERT_OK(restored);
  ExpectAll(**restored, 8);
  EXPECT_GT(Shown(registry_of_successor, "rows_on_disk"), .8 * kRows);
}

TEST(TableTierTest, ARowThatIsLostIsToldOnceAndNeverAWrongValue) {
  std::vector<absl::Status> failures;
  const auto shard =
      *LoadShard(TieredOrder(),
                 {.on_tier_failure = [&failures](const absl::Status& status) {
                   failures.push_back(status);
                 }});
  uint64_t sequence = 0;
  PushToAll(*shard, sequence);
  PushToAll(*shard, sequence);
  DamageTiers();
  int lost = 0;
  for (uint64_t first = 0; first < kRows; first += kRowsOfPush) {
    const auto values = PullRows(*shard, first);
    if (values.ok()) {
      EXPECT_TRUE(AllAre(8, *values));
      continue;
    }
    ++lost;
    EXPECT_THAT(values.status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is lost")));
  }
  EXPECT_GT(lost, 0);
  EXPECT_EQ(failures.size(), 1u);
}

TEST(TableTierTest, TiersHaveToFitBesideEachOther) {
  wire::LoadRequest order = TieredOrder();
  wire::TableSpec& second = *order.add_table();
  second = order.table(0);
  second.set_name("u");
  second.set_id(1);
  const uint64_t bytes = second.tier().memory_bytes();
  EXPECT_OK(LoadShard(order, {.memory_bytes = 2 * bytes}).status());
  EXPECT_THAT(LoadShard(order, {.memory_bytes = 2 * bytes - 1}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("table \"u\""),
                             HasSubstr("--memory_limit_bytes"),
                             HasSubstr(absl::StrCat(bytes - 1)))));
}

TEST(TableTierTest, ADirectoryThatIsNotThereIsNamed) {
  EXPECT_THAT(
      LoadShard(TieredOrder(), {.tier_directory = "/nowhere/rows"}).status(),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("/nowhere/rows"), HasSubstr("--tier_dir"))));
}

}  // namespace
}  // namespace parasol
