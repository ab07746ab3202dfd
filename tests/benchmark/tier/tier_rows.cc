// Rows a second of a sparse table that is larger than its memory, beside one
// that is all in memory and beside RocksDB with as much memory:
//
//   bazel run //tests/benchmark/tier:tier_rows -- --rows=8000000
//
// A step reads 10,000 ids and pushes their gradients, as training does: 16
// values with Adagrad. Each contender has a process of its own; what is counted
// are rows that are read and pushed, their CPU time on all threads, and the
// process's resident memory at the end. Plain reads of 4 KiB stand beside them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/rows/row_table.h"
#include "cluster/rows/row_tier.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "storage/tier/testing/rocksdb_rows.h"
#include "storage/tier/tier_file.h"

ABSL_FLAG(uint64_t, rows, 4000000, "Rows of the table.");
ABSL_FLAG(uint64_t, memory_mib, 128, "Memory for rows that are not on disk.");
ABSL_FLAG(double, seconds, 10, "How long each is measured, and warms up.");
ABSL_FLAG(std::string, directory, "/var/tmp", "Where the disk is.");
ABSL_FLAG(std::vector<std::string>, contenders,
          std::vector<std::string>({"memory", "reads", "tier", "rocksdb"}),
          "Who is measured, in this order.");

namespace parasol {
namespace {

constexpr size_t kWidth = 16;
constexpr size_t kFloats = 2 * kWidth;
constexpr size_t kIdsOfStep = 10000;
constexpr float kRate = .01f;
constexpr float kInitialSum = .1f;

const std::byte* BytesOf(const void* data) {
  return static_cast<const std::byte*>(data);
}

// Draws 1 to n with probabilities that fall with the power `exponent`, by
// rejection-inversion (Hörmann and Derflinger 1996).
class Zipf {
 public:
  Zipf(uint64_t n, double exponent)
      : exponent_(exponent),
        low_(Integral(1.5) - 1),
        high_(Integral(static_cast<double>(n) + .5)),
        n_(static_cast<double>(n)) {}

  uint64_t operator()(std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(low_, high_);
    while (true) {
      const double u = uniform(random);
      const double x = Inverse(u);
      const double k = std::clamp(std::floor(x + .5), 1., n_);
      if (u >= Integral(k + .5) - std::pow(k, -exponent_)) {
        return static_cast<uint64_t>(k);
      }
    }
  }

 private:
  double Integral(double x) const {
    return (std::pow(x, 1 - exponent_) - 1) / (1 - exponent_);
  }
  double Inverse(double u) const {
    return std::pow(1 + u * (1 - exponent_), 1 / (1 - exponent_));
  }

  const double exponent_;
  const double low_;
  const double high_;
  const double n_;
};

using DrawId = std::function<uint64_t(std::mt19937_64&)>;

// Ids are spread over all 64 bits, as hashed features are.
uint64_t IdOf(uint64_t row) { return row * 0x9e3779b97f4a7c15; }

// What trains a table.
class Contender {
 public:
  virtual ~Contender() = default;
  // Reads the rows, and pushes their gradients. Rows that are missing are made.
  virtual void Step(const std::vector<uint64_t>& ids,
                    const std::vector<float>& gradients) = 0;
  // Returns what it has read from the disk since the last call, during `time`.
  virtual std::string Note(absl::Duration) { return ""; }
};

class TableContender : public Contender {
 public:
  explicit TableContender(bool has_tier) {
    job::Optimizer adagrad;
    adagrad.mutable_adagrad()->set_learning_rate(kRate);
    RowTable::Options options = {.name = "clicks", .width = kWidth, .seed = 1};
    options.initializer.mutable_random_uniform();
    if (has_tier) {
      auto file = OpenTierFile(absl::GetFlag(FLAGS_directory));
      CHECK(file.ok()) << file.status();
      options.tier.file = *std::move(file);
      options.tier.memory_bytes = absl::GetFlag(FLAGS_memory_mib) << 20;
    }
    auto table = RowTable::Create(std::move(options), *MakeOptimizer(adagrad));
    CHECK(table.ok()) << table.status();
    table_ = *std::move(table);
  }

  void Step(const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) override {
    values_.resize(ids.size() * kWidth);
    absl::Status status =
        table_->Pull(BytesOf(ids.data()), ids.size(), values_.data());
    CHECK(status.ok()) << status;
    status = table_->Push(BytesOf(ids.data()), BytesOf(gradients.data()),
                          ids.size());
    CHECK(status.ok()) << status;
  }

  std::string Note(absl::Duration time) override {
    const RowTotals& totals = table_->totals();
    const int64_t reads = totals.disk_reads.load() - noted_reads_;
    const int64_t lookups = totals.lookups.load() - noted_lookups_;
    noted_reads_ += reads;
    noted_lookups_ += lookups;
    if (lookups == 0) return "";
    return absl::StrFormat(
        "%d of %d rows on disk, file %d MiB, %.3f reads a row, %.1f k/s",
        totals.rows_on_disk.load(), totals.rows.load(),
        totals.disk_bytes.load() >> 20, 2. * reads / lookups,
        reads / absl::ToDoubleSeconds(time) / 1e3);
  }

 private:
  std::unique_ptr<RowTable> table_;
  int64_t noted_reads_ = 0;
  int64_t noted_lookups_ = 0;
  std::vector<float> values_;
};

class RocksDbContender : public Contender {
 public:
  RocksDbContender()
      : directory_(absl::StrCat(absl::GetFlag(FLAGS_directory), "/tier_rows-",
                                getpid())) {
    auto rows = RocksDbRows::Create(
        directory_, absl::GetFlag(FLAGS_memory_mib) << 20, kFloats);
    CHECK(rows.ok()) << rows.status();
    rows_ = *std::move(rows);
  }
  ~RocksDbContender() override {
    rows_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Step(const std::vector<uint64_t>& ids,
            const std::vector<float>& gradients) override {
    values_.resize(ids.size() * kFloats);
    absl::Status status = rows_->Get(ids, absl::MakeSpan(values_));
    CHECK(status.ok()) << status;
    for (size_t i = 0; i < ids.size(); ++i) {
      float* const row = &values_[i * kFloats];
      for (size_t c = 0; c < kWidth; ++c) {
        const float gradient = gradients[i * kWidth + c];
        float& sum = row[kWidth + c];
        if (sum == 0) sum = kInitialSum;
        sum += gradient * gradient;
        row[c] -= kRate * gradient / std::sqrt(sum + 1e-7f);
      }
    }
    status = rows_->Put(ids, values_);
    CHECK(status.ok()) << status;
  }

 private:
  const std::string directory_;
  std::unique_ptr<RocksDbRows> rows_;
  std::vector<float> values_;
};

std::unique_ptr<Contender> MakeContender(const std::string& name) {
  if (name == "rocksdb") return std::make_unique<RocksDbContender>();
  return std::make_unique<TableContender>(/*has_tier=*/name == "tier");
}

size_t ResidentMib() {
  size_t pages = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

struct Measured {
  uint64_t rows = 0;
  absl::Duration time = absl::ZeroDuration();
  absl::Duration cpu = absl::ZeroDuration();  // of all threads
};

absl::Duration CpuTime() {
  rusage usage;
  CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return absl::DurationFromTimeval(usage.ru_utime) +
         absl::DurationFromTimeval(usage.ru_stime);
}

double MachineLoad() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

// Draws ids beside the clock.
Measured Train(Contender& contender, const DrawId& draw,
               std::mt19937_64& random, absl::Duration limit) {
  const std::vector<float> gradients(kIdsOfStep * kWidth, .001f);
  std::vector<uint64_t> ids(kIdsOfStep);
  Measured measured;
  while (measured.time < limit) {
    for (uint64_t& id : ids) id = IdOf(draw(random));
    const absl::Duration cpu = CpuTime();
    const absl::Time start = Clock::Real().Now();
    contender.Step(ids, gradients);
    measured.time += Clock::Real().Now() - start;
    measured.cpu += CpuTime() - cpu;
    measured.rows += ids.size();
  }
  return measured;
}

void Fill(Contender& contender, uint64_t rows) {
  const std::vector<float> gradients(kIdsOfStep * kWidth, .001f);
  for (uint64_t first = 1; first <= rows; first += kIdsOfStep) {
    std::vector<uint64_t> ids(std::min(kIdsOfStep, rows + 1 - first));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = IdOf(first + i);
    contender.Step(ids, gradients);
  }
}

void Measure(const std::string& name) {
  const uint64_t rows = absl::GetFlag(FLAGS_rows);
  const auto limit = absl::Seconds(absl::GetFlag(FLAGS_seconds));
  const std::unique_ptr<Contender> contender = MakeContender(name);
  const absl::Time start = Clock::Real().Now();
  Fill(*contender, rows);
  absl::PrintF("%-8s filled in %s\n", name,
               absl::FormatDuration(absl::Trunc(Clock::Real().Now() - start,
                                                absl::Milliseconds(1))));
  std::mt19937_64 random(1);
  Zipf zipf(rows, 1.1);
  std::uniform_int_distribution<uint64_t> uniform(1, rows);
  for (const bool is_zipf : {true, false}) {
    const DrawId draw = [&](std::mt19937_64& source) {
      return is_zipf ? zipf(source) : uniform(source);
    };
    Train(*contender, draw, random, limit);
    contender->Note(limit);
    const Measured measured = Train(*contender, draw, random, limit);
    const auto count = static_cast<double>(measured.rows);
    absl::PrintF(
        "%-8s %-9s %8.1f k rows/s %8.1f k rows/CPU s  RSS %5d MiB  load %.1f  "
        "%s\n",
        name, is_zipf ? "zipf(1.1)" : "uniform",
        count / absl::ToDoubleSeconds(measured.time) / 1e3,
        count / absl::ToDoubleSeconds(measured.cpu) / 1e3, ResidentMib(),
        MachineLoad(), contender->Note(measured.time));
  }
}

// The floor: blocks at random of a file as large as the rows, and nothing else.
void MeasureReads() {
  constexpr size_t kBlock = TierFile::kBlockBytes;
  constexpr size_t kReads = 1024;
  auto file = OpenTierFile(absl::GetFlag(FLAGS_directory));
  CHECK(file.ok()) << file.status();
  const BlockMemory blocks(kReads * kBlock);
  std::fill_n(blocks.data(), blocks.size(), std::byte{1});
  const uint64_t size = std::max(
      absl::GetFlag(FLAGS_rows) * kFloats * sizeof(float), blocks.size());
  for (uint64_t offset = 0; offset < size; offset += blocks.size()) {
    const absl::Status written =
        (*file)->Write(offset, absl::MakeSpan(blocks.data(), blocks.size()));
    CHECK(written.ok()) << written;
  }
  std::mt19937_64 random(1);
  const auto limit = absl::Seconds(absl::GetFlag(FLAGS_seconds));
  const absl::Time start = Clock::Real().Now();
  const absl::Duration cpu = CpuTime();
  double reads = 0;
  while (Clock::Real().Now() - start < limit) {
    std::vector<TierFile::Reading> readings;
    for (size_t i = 0; i < kReads; ++i) {
      readings.push_back(
          {.offset = random() % (size / kBlock) * kBlock,
           .out = absl::MakeSpan(blocks.data() + i * kBlock, kBlock)});
    }
    const absl::Status read = (*file)->Read(readings);
    CHECK(read.ok()) << read;
    reads += kReads;
  }
  absl::PrintF(
      "%-8s uniform   %8.1f k reads/s %7.1f k reads/CPU s  load %.1f\n",
      "reads", reads / absl::ToDoubleSeconds(Clock::Real().Now() - start) / 1e3,
      reads / absl::ToDoubleSeconds(CpuTime() - cpu) / 1e3, MachineLoad());
}

int Run() {
  const std::vector<std::string> known = {"memory", "reads", "tier", "rocksdb"};
  const std::vector<std::string> names = absl::GetFlag(FLAGS_contenders);
  for (const std::string& name : names) {
    if (std::count(known.begin(), known.end(), name) == 0) {
      absl::FPrintF(stderr, "tier_rows: no contender %s; there are %s\n", name,
                    absl::StrJoin(known, ", "));
      return 2;
    }
  }
  for (const std::string& name : names) {
    std::fflush(stdout);
    const pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
      if (name == "reads") {
        MeasureReads();
      } else {
        Measure(name);
      }
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (status != 0) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return parasol::Run();
}
