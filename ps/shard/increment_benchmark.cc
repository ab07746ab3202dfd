// What increments cost beside whole files, and what both cost the pushes of a
// worker meanwhile:
//
//   bazel run -c opt //ps/shard:increment_benchmark
//
// One shard with 4 Mi rows of 16 floats under Adagrad, and pushes of 10,000
// random rows through ParameterShard, one after the other, on one thread. Each
// figure is the median of three repetitions; TMPDIR chooses the disk.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/write_shard.h"

namespace parasol {
namespace {

constexpr uint64_t kRows = 4 << 20;
constexpr size_t kWidth = 16;
constexpr size_t kIdsPerPush = 10'000;
constexpr int kRepetitions = 3;
// Pushes of one measurement of a throughput.
constexpr int kPushes = 1000;

class Bench {
 public:
  Bench() {
    std::filesystem::create_directories(directory_);
    wire::LoadRequest order;
    order.set_run_id("run");
    order.set_num_shards(1);
    order.mutable_optimizer()->mutable_adagrad()->set_learning_rate(.01);
    wire::TableSpec& table = *order.add_table();
    table.set_name("items");
    table.set_width(kWidth);
    table.mutable_initializer()->mutable_zeros();
    auto shard = LoadShard(order, {});
    CHECK(shard.ok()) << shard.status();
    shard_ = *std::move(shard);
    std::vector<uint64_t> ids(kIdsPerPush);
    for (uint64_t first = 0; first < kRows; first += kIdsPerPush) {
      for (size_t i = 0; i < kIdsPerPush; ++i) {
        ids[i] = std::min(first + i, kRows - 1);
      }
      Push(ids);
    }
  }
  ~Bench() { std::filesystem::remove_all(directory_); }

  void PushRandom(std::mt19937_64& random, uint64_t rows) {
    std::vector<uint64_t> ids(kIdsPerPush);
    for (uint64_t& id : ids) id = random() % rows;
    Push(ids);
  }

  // Touches `share` of the rows.
  void Touch(double share) {
    std::vector<uint64_t> ids(static_cast<size_t>(share * kRows));
    std::mt19937_64 random(++seed_);
    for (uint64_t& id : ids) id = random() % kRows;
    for (size_t first = 0; first < ids.size(); first += kIdsPerPush) {
      const size_t count = std::min(kIdsPerPush, ids.size() - first);
      Push({ids.begin() + first, ids.begin() + first + count});
    }
  }

  // Takes and writes a snapshot; returns its bytes.
  uint64_t Write(bool is_increment) {
    const uint64_t before = number_++;
    ShardSnapshot snapshot = shard_->TakeSnapshot(
        false, {.number = number_, .since = is_increment ? before : 0});
    const std::string path = absl::StrCat(directory_, "/shard.sst");
    std::filesystem::remove(path);
    const auto file = WriteShard(std::move(snapshot), 0, 1, path);
    CHECK(file.ok()) << file.status();
    return file->bytes();
  }

 private:
  void Push(const std::vector<uint64_t>& ids) {
    wire::Operation operation;
    wire::RowPush& push = *operation.mutable_row_push();
    push.set_sequence(++sequence_);
    push.set_rows(ids.size());
    const std::vector<float> gradients(ids.size() * kWidth, .5f);
    const PayloadView payloads[] = {ViewOf(ids), ViewOf(gradients)};
    shard_->Execute(1, operation, payloads,
                    [](const absl::StatusOr<OperationResult>& result) {
                      CHECK(result.ok()) << result.status();
                    });
  }
  template <typename T>
  static PayloadView ViewOf(const std::vector<T>& values) {
    return PayloadView(
        {absl::string_view(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(T))});
  }

  const std::string directory_ =
      std::filesystem::temp_directory_path() / "increment_benchmark";
  std::unique_ptr<ParameterShard> shard_;
  uint64_t sequence_ = 0;
  std::atomic<uint64_t> number_ = 0;
  uint64_t seed_ = 0;
};

double MedianOf(const std::function<double()>& measure) {
  std::vector<double> values;
  for (int i = 0; i < kRepetitions; ++i) values.push_back(measure());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double SecondsOf(const std::function<void()>& work) {
  const absl::Time start = Clock::Real().Now();
  work();
  return absl::ToDoubleSeconds(Clock::Real().Now() - start);
}

// Millions of rows a second that one thread pushes.
double PushRate(Bench& bench, uint64_t rows) {
  std::mt19937_64 random(7);
  const double seconds = SecondsOf([&] {
    for (int i = 0; i < kPushes; ++i) bench.PushRandom(random, rows);
  });
  return kPushes * kIdsPerPush / seconds / 1e6;
}

// Does it while snapshots are written, with `pause` before each.
double PushRateWhile(Bench& bench, uint64_t rows, bool is_increment,
                     absl::Duration pause) {
  absl::Notification is_over;
  std::thread writer([&] {
    while (!is_over.WaitForNotificationWithTimeout(pause)) {
      bench.Write(is_increment);
    }
  });
  const double rate = PushRate(bench, rows);
  is_over.Notify();
  writer.join();
  return rate;
}

void Run() {
  const double unmarked = [] {
    Bench bench;
    return MedianOf([&] { return PushRate(bench, kRows); });
  }();
  Bench bench;
  uint64_t bytes = 0;
  const double whole =
      MedianOf([&] { return SecondsOf([&] { bytes = bench.Write(false); }); });
  std::printf("whole:               %8.1f MB, %6.3f s\n", bytes / 1e6, whole);
  for (const double share : {.001, .01, .1}) {
    bench.Write(true);
    const double seconds = MedianOf([&] {
      bench.Touch(share);
      return SecondsOf([&] { bytes = bench.Write(true); });
    });
    std::printf("increment of %4.1f %%: %8.1f MB, %6.3f s\n", share * 100,
                bytes / 1e6, seconds);
  }
  std::printf("pushes:                        %.2f million rows/s\n", unmarked);
  const double marked = MedianOf([&] { return PushRate(bench, kRows); });
  std::printf("pushes, marked:                %.2f (%.2f)\n", marked,
              marked / unmarked);
  // Rows that are touched again and again, 1 % of all, as hot ids are.
  for (const uint64_t rows : {kRows, kRows / 100}) {
    const double alone = MedianOf([&] { return PushRate(bench, rows); });
    for (const bool is_increment : {false, true}) {
      for (const double pause : {0., .2, 1.}) {
        const double rate = MedianOf([&] {
          return PushRateWhile(bench, rows, is_increment, absl::Seconds(pause));
        });
        std::printf(
            "pushes to %3.0f %% of rows beside %s, %.1f s apart: %.2f (%.2f)\n",
            100. * rows / kRows, is_increment ? "increments" : "whole files",
            pause, rate, rate / alone);
      }
    }
  }
}

}  // namespace
}  // namespace parasol

int main() { parasol::Run(); }
