#include "worker/lone_training.h"

#include <bit>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/testing/disk_faults.h"
#include "worker/shown/lone_status.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Pointwise;
using ::testing::SizeIs;

// A clock on which a second passes whenever the time is asked for, and waits
// end at once.
class PassingClock : public SimulatedClock {
 public:
  absl::Time Now() override {
    Advance(absl::Seconds(1));
    on_now();
    return SimulatedClock::Now();
  }
  bool AwaitWithTimeout(absl::Mutex&, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Advance(timeout);
    ++waits;
    on_wait();
    return condition.Eval();
  }

  std::function<void()> on_now = [] {};
  std::function<void()> on_wait = [] {};
  int waits = 0;
};

// Runs on the CPU, and on a CUDA device if there is one: variables that stay in
// its memory are saved and resumed like those in host memory.
class LoneTrainingTest : public DeviceTest {
 protected:
  LoneTrainingTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())),
        store_(root_ + "/checkpoints") {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ + "/data.csv") << "x,y\n1,2\n2,4\n3,6\n4,8\n";
    job_ = ParseJob(R"pb(
      name: "line"
      model {
        input {
          name: "x"
          dense { column { name: "x" } }
        }
        layer {
          name: "hidden"
          dense {
            units: 3
            kernel_initializer { zeros {} }
            bias_initializer { zeros {} }
          }
        }
        layer {
          name: "y"
          dense {
            units: 1
            bias_initializer { zeros {} }
          }
        }
        loss { mean_squared_error {} }
      }
      train {
        csv {
          file: "data.csv"
          label { column: "y" }
        }
        batch_size: 2
      }
      optimizer { sgd { learning_rate: 0.01 } }
      end { steps: 20 }
      checkpoint { max_to_keep: 100 }
    )pb");
    job_.mutable_checkpoint()->set_directory(store_.directory());
    job_.mutable_checkpoint()->set_every_steps(10);
  }

  static job::Job ParseJob(const std::string& text) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
    return job;
  }

  // Has the model look ids up, too, in a table whose optimizer changes all
  // rows.
  void AddTable() {
    std::ofstream(root_ + "/data.csv")
        << "x,c,y\n1,a,2\n2,b,4\n3,a,6\n4,c,8\n5,d,1\n6,a,0\n7,e,3\n";
    job::Model& model = *job_.mutable_model();
    model = ParseJob(R"pb(
              model {
                input {
                  name: "x"
                  dense { column { name: "x" } }
                }
                input {
                  name: "c"
                  ids {
                    column {
                      name: "c"
                      hash {}
                    }
                  }
                }
                sparse_table { name: "rows" width: 3 }
                layer {
                  name: "hidden"
                  dense { units: 3 }
                  input: "x"
                }
                layer {
                  name: "row"
                  embedding_bag { table: "rows" }
                  input: "c"
                }
                layer {
                  name: "all"
                  add {}
                  input: [ "hidden", "row" ]
                }
                layer {
                  name: "y"
                  dense { units: 1 }
                }
                loss { mean_squared_error {} }
              }
            )pb")
                .model();
    job_.mutable_optimizer()->mutable_adam();
    job_.mutable_optimizer()->set_clipnorm(.5);
  }

  absl::Status Train(Clock& clock) { return TrainOn(GetParam(), clock); }
  absl::Status TrainOn(const std::string& device, Clock& clock) {
    job::Job job = job_;
    FillDefaults(job);
    MetricsRegistry metrics;
    LoneTraining training({.trainer = {.job = job,
                                       .graph = *ResolveGraph(job.model()),
                                       .replicas = {.devices = {device}},
                                       .data_dir = root_}},
                          clock, metrics);
    return training.Run();
  }
  absl::Status TrainOn(const std::string& device) {
    return TrainOn(device, still_);
  }
  absl::Status Train() { return TrainOn(GetParam()); }

  std::vector<int64_t> Steps() const { return *store_.ListSteps(); }
  durable::CheckpointManifest ManifestOf(int64_t step) const {
    return *store_.ReadManifest(step);
  }

  ~LoneTrainingTest() override { FailFsyncOf(""); }

  // The checkpoint of `step` can't be written until FailFsyncOf("").
  void BlockCheckpoint(int64_t step, int code = EIO) const {
    const std::string root = fs::canonical(store_.directory());
    FailFsyncOf(absl::StrFormat("%s/.tmp-ckpt-%012d-*", root, step), code);
  }

  const std::string root_;
  const CheckpointStore store_;
  SimulatedClock still_;
  job::Job job_;
};

TEST_P(LoneTrainingTest, TheInitialValuesAreTheFirstCheckpoint) {
  ASSERT_OK(Train());
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20));
  EXPECT_FALSE(ManifestOf(0).final());
  EXPECT_TRUE(ManifestOf(20).final());
  ASSERT_OK_AND_ASSIGN(const auto checkpoint,
                       CheckpointReader::Open(store_.PathOf(0)));
  std::vector<float> kernel(3, 7);
  ASSERT_OK(checkpoint->ReadElements("hidden/kernel", kValueArray, 0,
                                     absl::MakeSpan(kernel)));
  EXPECT_THAT(kernel, Each(0));
}

TEST_P(LoneTrainingTest, ARunWhoseFirstStepFailsHasACheckpointToComeBackTo) {
  std::ofstream(root_ + "/data.csv") << "x,y\n1e30,2\n1e30,4\n";
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Steps(), ElementsAre(0));
}

TEST_P(LoneTrainingTest, EverySecondsAloneCausesCheckpoints) {
  job_.mutable_checkpoint()->clear_every_steps();
  job_.mutable_checkpoint()->set_every_seconds(60);
  ASSERT_OK(Train());
  EXPECT_THAT(Steps(), ElementsAre(0, 20)) << "no time has passed";

  fs::remove_all(store_.directory());
  PassingClock clock;
  ASSERT_OK(Train(clock));
  EXPECT_THAT(Steps(), SizeIs(Ge(4)));
}

TEST_P(LoneTrainingTest, ACheckpointOfAWiderModelIsRefused) {
  ASSERT_OK(Train());
  job_.mutable_model()->mutable_layer(0)->mutable_dense()->set_units(2);
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr(store_.PathOf(20)),
                                      HasSubstr("hidden/kernel [1, 3], the job "
                                                "has hidden/kernel [1, 2]"))));
}

TEST_P(LoneTrainingTest, ACheckpointOfAnotherOptimizerIsRefused) {
  job_.mutable_optimizer()->mutable_sgd()->set_momentum(.9);
  ASSERT_OK(Train());
  job_.mutable_optimizer()->mutable_sgd()->clear_momentum();
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("slots momentum")));
  job_.mutable_optimizer()->mutable_adagrad();
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("the job has optimizer adagrad")));
}

TEST_P(LoneTrainingTest, ACompleteJobWritesNothing) {
  SimulatedClock clock;
  ASSERT_OK(Train(clock));
  const durable::CheckpointManifest last = ManifestOf(20);
  clock.Advance(absl::Hours(1));
  ASSERT_OK(Train(clock));
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20));
  EXPECT_EQ(ManifestOf(20).created_unix_micros(), last.created_unix_micros());
}

TEST_P(LoneTrainingTest, ItShowsItsStepsAndItsStacksWhileItTrains) {
  job_.mutable_end()->set_steps(1'000'000'000);
  job_.mutable_checkpoint()->clear_every_steps();
  FillDefaults(job_);
  MetricsRegistry metrics;
  LoneStatus shown(Clock::Real(), "not yet");
  LoneTraining training({.trainer = {.job = job_,
                                     .graph = *ResolveGraph(job_.model()),
                                     .replicas = {.devices = {GetParam()}},
                                     .data_dir = root_},
                         .shown = &shown},
                        Clock::Real(), metrics);
  std::jthread run([&] {
    EXPECT_THAT(training.Run(), StatusIs(absl::StatusCode::kCancelled));
  });
  const absl::Cleanup stop = [&] { training.Stop(); };
  // The part of a step is known when it has reported twice.
  const auto has_pace = [&] {
    const wire::JobStatus status = shown.Status();
    return status.task_size() == 1 && status.task(0).has_pace() &&
           status.task(0).pace().step().has_compute();
  };
  const absl::Time deadline = Clock::Real().Now() + absl::Minutes(1);
  while (!has_pace()) {
    ASSERT_LT(Clock::Real().Now(), deadline);
    Clock::Real().Pause(absl::Milliseconds(10));
  }

  wire::InspectRequest request;
  wire::Inspection& asked = *request.mutable_inspection();
  asked.set_kind(wire::Inspection::STACKS);
  request.set_task("worker/0");
  int64_t number = 0;
  absl::StatusOr<wire::InspectResponse> answer;
  // A kernel of CUDA on the host has a stack of its own.
  do {
    Clock::Real().Pause(absl::Milliseconds(10));
    asked.set_number(++number);
    answer = shown.inspection().Inspect(request);
    ASSERT_OK(answer);
    ASSERT_EQ(answer->task_size(), 1);
  } while (Clock::Real().Now() < deadline &&
           !absl::StrContains(answer->task(0).part(0).stacks(),
                              "LoneTraining::Run()"));
  EXPECT_THAT(answer->task(0).part(0).stacks(),
              HasSubstr("parasol::LoneTraining::Run()"));

  asked.set_kind(wire::Inspection::TRACE);
  asked.set_number(++number);
  asked.set_steps(3);
  asked.mutable_limit()->set_seconds(30);
  do {
    Clock::Real().Pause(absl::Milliseconds(10));
    ASSERT_LT(Clock::Real().Now(), deadline);
    answer = shown.inspection().Inspect(request);
    ASSERT_OK(answer);
  } while (answer->missing_task_size() > 0);
  std::map<std::string, int> names;
  for (const wire::TraceSpan& span : answer->task(0).part(0).span()) {
    ++names[span.name()];
  }
  EXPECT_THAT(names["step"], Ge(3));
  EXPECT_THAT(names["compute"], Ge(3));
  EXPECT_THAT(shown.PageAt("/status.json").body,
              HasSubstr("\"task\":\"worker/0\""));
}

TEST_P(LoneTrainingTest, TheResultIsOneLineBesideTheCheckpoints) {
  job_.mutable_eval()->CopyFrom(job_.train());
  ASSERT_OK(Train());
  ASSERT_OK(Train());  // complete already
  std::ifstream file(store_.directory() + "/evaluations.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_THAT(line, HasSubstr("\"global_step\":20,"));
  EXPECT_THAT(line, HasSubstr("\"examples\":4,"));
  EXPECT_THAT(line, HasSubstr("/ckpt-000000000020\",\"final\":true,"));
  EXPECT_FALSE(std::getline(file, line));
}

TEST_P(LoneTrainingTest, ThePageHasTheEvaluationsOfTheRunBefore) {
  job_.mutable_eval()->CopyFrom(job_.train());
  ASSERT_OK(Train());
  FillDefaults(job_);
  MetricsRegistry metrics;
  LoneStatus shown(Clock::Real(), "not yet");
  LoneTraining training({.trainer = {.job = job_,
                                     .graph = *ResolveGraph(job_.model()),
                                     .replicas = {.devices = {GetParam()}},
                                     .data_dir = root_},
                         .shown = &shown},
                        Clock::Real(), metrics);
  ASSERT_OK(training.Run());
  EXPECT_THAT(shown.PageAt("/status.json").body,
              HasSubstr("\"evaluations\":[{\"step\":20,"));
}

TEST_P(LoneTrainingTest, ARunGoesOnToALaterEnd) {
  ASSERT_OK(Train());
  job_.mutable_end()->set_steps(30);
  ASSERT_OK(Train());
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(ManifestOf(30).run_id(), ManifestOf(0).run_id());
}

TEST_P(LoneTrainingTest, AnEndThatHasBeenPassedGetsItsFinalCheckpoint) {
  ASSERT_OK(Train());
  fs::remove_all(store_.PathOf(20));
  job_.mutable_end()->set_steps(5);
  ASSERT_OK(Train());
  EXPECT_THAT(Steps(), ElementsAre(0, 10));
  EXPECT_TRUE(ManifestOf(10).final());
}

TEST_P(LoneTrainingTest, ACheckpointThatFailsWhileTrainingIsTriedAgain) {
  job_.mutable_end()->set_steps(1000);
  job_.mutable_checkpoint()->set_every_steps(500);
  PassingClock clock;
  clock.on_now = [this, blocked = false]() mutable {
    if (blocked || !fs::exists(store_.PathOf(0))) return;
    blocked = true;
    BlockCheckpoint(500);
  };
  ASSERT_OK(Train(clock));
  EXPECT_THAT(Steps(), ElementsAre(0, AllOf(Ge(501), Lt(600)), 1000));
  EXPECT_EQ(clock.waits, 0);
}

TEST_P(LoneTrainingTest, TheLastCheckpointIsTriedUntilItCanBeWritten) {
  PassingClock clock;
  clock.on_wait = [this, &clock] {
    if (clock.waits == 3) FailFsyncOf("");
  };
  clock.on_now = [this, blocked = false]() mutable {
    if (blocked || !fs::exists(store_.PathOf(0))) return;
    blocked = true;
    BlockCheckpoint(20);
  };
  ASSERT_OK(Train(clock));
  EXPECT_EQ(clock.waits, 3);
  EXPECT_TRUE(ManifestOf(20).final());
}

TEST_P(LoneTrainingTest, AFirstCheckpointThatCantBeWrittenEndsTheRun) {
  PassingClock clock;
  clock.on_now = [this] {
    if (fs::exists(store_.directory())) BlockCheckpoint(0, ENOSPC);
  };
  EXPECT_THAT(Train(clock), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("be written in 10m: ")));
}

TEST_P(LoneTrainingTest, ADirectoryThatIsFullAtTheStartEndsTheRun) {
  PassingClock clock;
  FailFsyncOf(fs::canonical(root_).string() + "*", ENOSPC);
  EXPECT_THAT(Train(clock), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("tried again for 10m")));
  EXPECT_GE(clock.waits, 100);
}

TEST_P(LoneTrainingTest, ACheckpointWithADamagedFileIsPassedOver) {
  ASSERT_OK(Train());
  job_.mutable_end()->set_steps(30);
  const std::string path = store_.PathOf(20) + "/shard-00000-of-00001.sst";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(fs::file_size(path) / 2);
  const char byte = static_cast<char>(file.peek() ^ 1);
  file.seekp(fs::file_size(path) / 2);
  file.put(byte);
  file.close();
  ASSERT_OK(store_.CheckComplete(20));
  ASSERT_OK(Train());
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20, 30));
  EXPECT_OK(CheckpointReader::Open(store_.PathOf(20)));  // it was done again
}

TEST_P(LoneTrainingTest, ACheckpointThatCantBeReadNowIsAwaited) {
  ASSERT_OK(Train());
  job_.mutable_end()->set_steps(30);
  const std::string manifest = store_.PathOf(20) + "/MANIFEST";
  const std::string kept = root_ + "/kept";
  fs::rename(manifest, kept);
  fs::create_symlink("/proc/self/mem", manifest);  // reading it is EIO
  PassingClock clock;
  clock.on_wait = [&] {
    if (clock.waits == 3) fs::rename(kept, manifest);
  };
  ASSERT_OK(Train(clock));
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20, 30));
}

TEST_P(LoneTrainingTest, AMissingEvalFileIsFoundBeforeTheFirstStep) {
  *job_.mutable_eval() = job_.train();
  job_.mutable_eval()->mutable_csv()->set_file(0, "eval.csv");
  EXPECT_THAT(Train(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("eval.csv")));
  EXPECT_FALSE(fs::exists(store_.directory()));
}

TEST_P(LoneTrainingTest, AStoppedRunHasACheckpointOfItsLastStep) {
  job::Job job = job_;
  job.mutable_end()->set_steps(1000);
  FillDefaults(job);
  PassingClock clock;
  MetricsRegistry metrics;
  LoneTraining training({.trainer = {.job = job,
                                     .graph = *ResolveGraph(job.model()),
                                     .replicas = {.devices = {GetParam()}},
                                     .data_dir = root_}},
                        clock, metrics);
  clock.on_now = [&] {
    if (fs::exists(store_.PathOf(10))) training.Stop();
  };
  EXPECT_THAT(training.Run(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Steps().back(), AllOf(Ge(10), Lt(1000)));
  EXPECT_FALSE(ManifestOf(Steps().back()).final());
}

// Returns the bits of all elements of the checkpoint at `path`.
std::vector<uint32_t> BitsOf(const std::string& path) {
  const auto checkpoint = CheckpointReader::Open(path);
  EXPECT_OK(checkpoint);
  std::vector<uint32_t> bits;
  for (const auto& variable : (*checkpoint)->manifest().variable()) {
    int64_t elements = 1;
    for (const int64_t axis : variable.shape()) elements *= axis;
    std::vector<float> values(elements);
    for (int array = 0; array <= variable.slot_size(); ++array) {
      EXPECT_OK((*checkpoint)
                    ->ReadElements(variable.name(), array, 0,
                                   absl::MakeSpan(values)));
      for (const float value : values) {
        bits.push_back(std::bit_cast<uint32_t>(value));
      }
    }
  }
  return bits;
}

TEST_P(LoneTrainingTest, AResumedRunHasTheWeightsOfOneThatWasNotStopped) {
  job_.mutable_optimizer()->mutable_adam()->set_amsgrad(true);
  job_.mutable_optimizer()->set_clipnorm(.5);
  job_.mutable_model()
      ->mutable_layer(0)
      ->mutable_dense()
      ->clear_kernel_initializer();
  ASSERT_OK(Train());
  const std::vector<uint32_t> want = BitsOf(store_.PathOf(20));
  fs::remove_all(store_.PathOf(20));
  ASSERT_OK(Train());
  EXPECT_EQ(BitsOf(store_.PathOf(20)), want);
  EXPECT_NE(BitsOf(store_.PathOf(10)), want);
}

struct SavedTable {
  int64_t updates = 0;
  // Values and slots by id.
  std::map<uint64_t, std::vector<float>> rows;
};

SavedTable TableOf(const std::string& path) {
  const auto checkpoint = CheckpointReader::Open(path);
  EXPECT_OK(checkpoint);
  SavedTable table;
  EXPECT_OK((*checkpoint)->ReadRows("rows", [&](const RowBatch& batch) {
    table.updates = batch.updates;
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      const size_t floats = batch.rows.size() / batch.ids.size();
      const auto row = batch.rows.subspan(i * floats, floats);
      table.rows[batch.ids[i]].assign(row.begin(), row.end());
    }
    return absl::OkStatus();
  }));
  return table;
}

TEST_P(LoneTrainingTest, AResumedRunHasTheRowsOfOneThatWasNotStopped) {
  AddTable();
  ASSERT_OK(Train());
  const std::string last = store_.PathOf(20);
  const SavedTable want = TableOf(last);
  EXPECT_THAT(want.rows, SizeIs(5));
  EXPECT_EQ(want.updates, 20);
  fs::remove_all(last);
  ASSERT_OK(Train());
  EXPECT_EQ(TableOf(last).rows, want.rows);
  EXPECT_EQ(TableOf(last).updates, 20);
}

// Tables of the CPU are in host memory, a CUDA device's in its own.
TEST_P(LoneTrainingTest, ACheckpointOfAnotherDeviceIsGoneOnWith) {
  AddTable();
  job_.mutable_end()->set_steps(30);
  ASSERT_OK(TrainOn("cpu"));
  const SavedTable want = TableOf(store_.PathOf(30));
  fs::remove_all(store_.directory());
  for (const std::string device : {"cpu", GetParam().c_str(), "cpu"}) {
    job_.mutable_end()->set_steps(job_.end().steps() % 30 + 10);
    ASSERT_OK(TrainOn(device));
  }
  EXPECT_EQ(TableOf(store_.PathOf(20)).updates, 20);
  const SavedTable got = TableOf(store_.PathOf(30));
  EXPECT_EQ(got.updates, 30);
  ASSERT_EQ(got.rows.size(), want.rows.size());
  for (const auto& [id, row] : want.rows) {
    EXPECT_THAT(got.rows.at(id), Pointwise(FloatNear(1e-5), row)) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LoneTrainingTest,
                         testing::Values("cpu", "cuda:0"), DeviceName);

}  // namespace
}  // namespace parasol
