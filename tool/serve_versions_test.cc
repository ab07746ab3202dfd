// `parasol serve` while checkpoints come and go, with tables in memory and in
// files.

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "serving/testing/http_client.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"
#include "tool/testing/run_tool.h"
#include "tool/testing/serve_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kWidth = 32;

class ServeVersionsTest : public ServeFixture {
 protected:
  // Copies a checkpoint, and gives the copy `more` rows that are not asked for.
  void CopyWithMoreRows(int64_t from, int64_t to, uint64_t more) {
    CheckpointStore store(Path("ckpt"));
    ASSERT_OK_AND_ASSIGN(const auto read,
                         CheckpointReader::Open(store.PathOf(from)));
    ASSERT_OK_AND_ASSIGN(const std::string directory, store.Begin(to));
    ASSERT_OK_AND_ASSIGN(const auto writer,
                         ShardWriter::Create(directory + "/0.sst"));
    durable::CheckpointManifest manifest = read->manifest();
    std::vector<durable::CheckpointVariable> variables(
        manifest.variable().begin(), manifest.variable().end());
    std::sort(variables.begin(), variables.end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    for (const durable::CheckpointVariable& variable : variables) {
      int64_t elements = 1;
      for (const int64_t size : variable.shape()) elements *= size;
      std::vector<float> values(elements);
      for (int array = 0; array <= variable.slot_size(); ++array) {
        ASSERT_OK(read->ReadElements(variable.name(), array, 0,
                                     absl::MakeSpan(values)));
        ASSERT_OK(writer->AddElements(variable.name(), array, 0, 1, values));
      }
    }
    ASSERT_OK(read->ReadRows("rows", [&](const RowBatch& batch) {
      return writer->AddRows("rows", batch);
    }));
    std::mt19937_64 ids(1);
    constexpr uint64_t kBatch = 500;
    for (uint64_t done = 0; done < more; done += kBatch) {
      std::vector<uint64_t> batch(kBatch);
      for (uint64_t& id : batch) id = ids();
      ASSERT_OK(writer->AddRows(
          "rows", {.updates = 1,
                   .ids = batch,
                   .rows = std::vector<float>(kBatch * kWidth, 1.5f)}));
    }
    manifest.set_global_step(to);
    manifest.clear_file();
    ASSERT_OK_AND_ASSIGN(*manifest.add_file(), writer->Finish());
    ASSERT_OK(store.Commit(directory, manifest));
  }

  // Writes a checkpoint as an increment to another one: all rows are twice as
  // large.
  void AddIncrement(int64_t from, int64_t to) {
    CheckpointStore store(Path("ckpt"));
    ASSERT_OK_AND_ASSIGN(const auto read,
                         CheckpointReader::Open(store.PathOf(from)));
    ASSERT_OK_AND_ASSIGN(const std::string directory, store.Begin(to));
    durable::CheckpointManifest manifest = read->manifest();
    for (const durable::CheckpointFile& file : manifest.file()) {
      ASSERT_OK(Link(store.PathOf(from) + "/" + file.name(),
                     directory + "/" + file.name()));
    }
    ASSERT_OK_AND_ASSIGN(const auto writer, ShardWriter::Create(absl::StrCat(
                                                directory, "/", to, ".sst")));
    writer->SetWriter({.shard = 0, .num_shards = 1});
    const durable::CheckpointFile& last = *manifest.file().rbegin();
    writer->SetBase({last.bytes(), last.crc32c()});
    ASSERT_OK(read->ReadRows("rows", [&](const RowBatch& batch) {
      std::vector<float> rows(batch.rows.begin(), batch.rows.end());
      for (float& value : rows) value *= 2;
      return writer->AddRows(
          "rows", {.updates = batch.updates, .ids = batch.ids, .rows = rows});
    }));
    manifest.set_global_step(to);
    manifest.set_created_unix_micros(manifest.created_unix_micros() + 1);
    const int number = manifest.file_size();
    ASSERT_OK_AND_ASSIGN(*manifest.add_file(), writer->Finish());
    manifest.mutable_file(number)->set_increment(number);
    ASSERT_OK(store.Commit(directory, manifest));
  }

  // Makes the rows of the job's table wider, without slots.
  void WidenRows() {
    std::ifstream file(Path("job.textproto"));
    std::string job((std::istreambuf_iterator<char>(file)), {});
    const std::string table =
        "width: 3 optimizer { ftrl { learning_rate: 0.1 } }";
    job.replace(job.find(table), table.size(),
                absl::StrCat("width: ", kWidth,
                             " optimizer { sgd { learning_rate: 0.1 } }"));
    std::ofstream(Path("job.textproto")) << job;
  }

  // Returns the server's largest resident memory so far, in MiB.
  int64_t PeakOfServer() const {
    std::ifstream status(absl::StrCat("/proc/", server_->pid(), "/status"));
    for (std::string word; status >> word;) {
      if (word != "VmHWM:") continue;
      int64_t kibibytes = 0;
      status >> kibibytes;
      return kibibytes >> 10;
    }
    return -1;
  }

  // Returns the number of files of rows that the server has open.
  int RowFilesOfServer() const {
    int files = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(
             absl::StrCat("/proc/", server_->pid(), "/fd"), error)) {
      const std::string target = fs::read_symlink(entry.path(), error).string();
      if (absl::StrContains(target, "parasol-rows-")) ++files;
    }
    return files;
  }

  // Lets versions come, be refused and go back while requests are answered.
  void ExpectNoRequestFails(const std::vector<std::string>& flags,
                            int row_files);
};

void ServeVersionsTest::ExpectNoRequestFails(
    const std::vector<std::string>& flags, int row_files) {
  Train("ckpt", 20);
  Start(flags);
  AwaitLog("serving version 20");
  std::atomic<bool> is_over = false;
  std::atomic<int> failed = 0;
  std::atomic<int64_t> newest = 0;
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      HttpClient client(port_);
      while (!is_over) {
        const HttpAnswer answer = client.Post(kPredict, RowsOf(5));
        if (answer.status != 200) ++failed;
        newest = VersionOf(answer);
      }
    });
  }
  Train("ckpt", 40);
  AwaitLog("serving version 40 in place of 20");
  // A newer checkpoint that is damaged.
  const std::filesystem::path ckpt = Path("ckpt");
  std::filesystem::copy(ckpt / "ckpt-000000000040", ckpt / "making",
                        std::filesystem::copy_options::recursive);
  for (const auto& file :
       std::filesystem::directory_iterator(ckpt / "making")) {
    if (file.path().filename() == "MANIFEST") continue;
    std::filesystem::resize_file(file.path(), file.file_size() / 2);
  }
  std::filesystem::rename(ckpt / "making", ckpt / "ckpt-000000000060");
  AwaitLog("version 60 can't be served");
  EXPECT_EQ(newest, 40);
  HttpClient client(port_);
  EXPECT_EQ(VersionOf(client.Post(kPredict, RowsOf(1))), 40);
  EXPECT_THAT(client.Get("/v1/models/ratings").body,
              AllOf(HasSubstr("AVAILABLE"), HasSubstr("DATA_LOSS")));
  EXPECT_THAT(client.Get("/metrics").body,
              HasSubstr("parasol_serve_refused_loads_total 1"));
  // Back to the version before.
  std::filesystem::remove_all(ckpt / "ckpt-000000000060");
  std::filesystem::remove_all(ckpt / "ckpt-000000000040");
  AwaitLog("serving version 20 in place of 40");
  EXPECT_EQ(VersionOf(client.Post(kPredict, RowsOf(1))), 20);
  // The versions that are not served any more leave no file.
  while (RowFilesOfServer() != row_files) std::this_thread::yield();
  is_over = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeVersionsTest, NewCheckpointsComeWithoutAFailedRequest) {
  ExpectNoRequestFails({}, /*row_files=*/0);
}

TEST_F(ServeVersionsTest, TheSameWithTablesInFiles) {
  ExpectNoRequestFails({"--table_memory=0", "--table_dir=" + Path("")},
                       /*row_files=*/1);
}

TEST_F(ServeVersionsTest, OfIncrementsOnlyWhatHasChangedIsRead) {
  Train("ckpt", 20);
  Start({"--poll_interval=50ms"});
  AwaitLog("serving version 20");
  std::vector<std::string> answers;
  HttpClient client(port_);
  for (const int64_t step : {30, 40, 50}) {
    answers.push_back(client.Post(kPredict, RowsOf(20)).body);
    AddIncrement(step - 10, step);
    AwaitLog(absl::StrCat("serving version ", step, " in place of"));
  }
  answers.push_back(client.Post(kPredict, RowsOf(20)).body);
  EXPECT_THAT(client.Get("/metrics").body,
              AllOf(HasSubstr("parasol_serve_shared_loads_total 3"),
                    HasSubstr("parasol_serve_lag_seconds_count 3")));
  EXPECT_EQ(Terminate(), 0);
  // A server that loads it whole gives the same.
  Start({"--version=50"});
  AwaitLog("serving version 50");
  EXPECT_EQ(HttpClient(port_).Post(kPredict, RowsOf(20)).body, answers.back());
  EXPECT_THAT(HttpClient(port_).Get("/metrics").body,
              HasSubstr("parasol_serve_shared_loads_total 0"));
  EXPECT_EQ(Terminate(), 0);
  std::sort(answers.begin(), answers.end());
  EXPECT_EQ(std::unique(answers.begin(), answers.end()), answers.end());
}

TEST_F(ServeVersionsTest, ADamagedIncrementIsPassedOver) {
  Train("ckpt", 20);
  Start({"--poll_interval=50ms"});
  AwaitLog("serving version 20");
  AddIncrement(20, 25);
  AwaitLog("serving version 25");
  // Made out of sight: its increment follows another file.
  AddIncrement(20, 24);
  const fs::path ckpt = Path("ckpt");
  fs::copy(ckpt / "ckpt-000000000025", ckpt / "making",
           fs::copy_options::recursive);
  std::string bytes;
  {
    std::ifstream file(ckpt / "making/25.sst", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  bytes[bytes.size() / 3] ^= 1;
  std::ofstream(ckpt / "making/25.sst", std::ios::binary) << bytes;
  durable::CheckpointManifest manifest =
      *CheckpointStore(ckpt).ReadManifest(25);
  manifest.set_global_step(30);
  ASSERT_OK(
      WriteFileDurably(ckpt / "making/MANIFEST", EncodeManifest(manifest)));
  // Version 25 has the rows of 20, so only the damaged file would be read.
  fs::remove_all(ckpt / "ckpt-000000000025");
  AwaitLog("serving version 24 in place of 25");
  fs::rename(ckpt / "making", ckpt / "ckpt-000000000030");
  AwaitLog("version 30 can't be served");
  HttpClient client(port_);
  EXPECT_EQ(VersionOf(client.Post(kPredict, RowsOf(1))), 24);
  EXPECT_EQ(Terminate(), 0);
}

TEST_F(ServeVersionsTest, ATableBeyondTheLimitGivesTheSameAndNeedsNoMemory) {
  WidenRows();
  Train("ckpt", 20);
  // 64 MB of values.
  CopyWithMoreRows(20, 40, 500'000);
  std::string answers[2];
  int64_t peaks[2];
  for (const bool is_limited : {false, true}) {
    Start(is_limited ? std::vector<std::string>{"--table_memory=8000000"}
                     : std::vector<std::string>{});
    AwaitLog("serving version 40");
    HttpClient client(port_);
    const HttpAnswer answer = client.Post(kPredict, RowsOf(85));
    EXPECT_EQ(answer.status, 200) << answer.body;
    answers[is_limited] = answer.body;
    peaks[is_limited] = PeakOfServer();
    EXPECT_EQ(RowFilesOfServer(), is_limited ? 1 : 0);
    EXPECT_EQ(Terminate(), 0);
  }
  EXPECT_EQ(answers[0], answers[1]);
#ifdef __SANITIZE_ADDRESS__
  constexpr bool kKeepsFreedMemory = true;
#else
  constexpr bool kKeepsFreedMemory = false;
#endif
  EXPECT_TRUE(kKeepsFreedMemory || peaks[true] + 48 < peaks[false])
      << peaks[true] << " and " << peaks[false] << " MiB";
}

TEST_F(ServeVersionsTest, ADirectoryForTablesThatCanNotBeUsedIsNamed) {
  Train("ckpt", 2);
  for (const auto& [flags, words] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--table_memory=-1"}, "--table_memory=-1 is not at least 0"},
           {{"--table_dir=/tmp"}, "--table_memory; set that too"},
           {{"--table_memory=5", "--table_dir=/nowhere"},
            "--table_dir=/nowhere: "}}) {
    std::vector<std::string> arguments = {"serve", Path("ckpt"), "--port=0",
                                          "--device=cpu"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const CompletedProcess run = RunTool(arguments);
    EXPECT_EQ(run.end.code(), 2) << run.standard_error;
    EXPECT_THAT(run.standard_error, HasSubstr(words));
  }
}

}  // namespace
}  // namespace parasol
