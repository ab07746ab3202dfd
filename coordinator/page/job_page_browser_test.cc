// The chief's page in a browser, with 200 tasks: what it shows, and pictures of
// it in TEST_UNDECLARED_OUTPUTS_DIR. Skipped where no Chromium is installed.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/page_server.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/rpc/proto_duration.h"
#include "coordinator/page/job_page.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kChromium[] = "/usr/bin/chromium";
constexpr int kWorkers = 176;
constexpr int kPs = 24;
constexpr absl::Duration kBrowserLimit = absl::Seconds(120);

google::protobuf::Duration Milliseconds(double milliseconds) {
  return ToProto(absl::Milliseconds(milliseconds));
}

void AddWorker(int index, wire::JobStatus& status) {
  wire::TaskStatus& task = *status.add_task();
  task.mutable_task()->set_role("worker");
  task.mutable_task()->set_index(index);
  task.set_alive(index != 17);
  task.set_address(absl::StrCat("10.0.1.", index, ":2222"));
  task.set_process(absl::StrCat("host", index, ", process ", 4000 + index));
  task.set_version("0.1.0");
  if (!task.alive()) return;
  *task.mutable_silence() = Milliseconds(index == 41 ? 4200 : 7 * index % 1000);
  wire::WorkerPace& pace = *task.mutable_pace();
  wire::StepTimes& step = *pace.mutable_step();
  const double input = index == 3 ? 190 : 2 + index % 3;
  const double pull = 4 + index % 5;
  const double push = 3 + index % 4;
  *step.mutable_input() = Milliseconds(input);
  *step.mutable_pull() = Milliseconds(pull);
  *step.mutable_compute() = Milliseconds(31);
  *step.mutable_push() = Milliseconds(push);
  pace.set_steps_per_second(1000 / (input + pull + 31 + push));
  if (index == 3) task.set_slow("227 ms a batch, 4.9 times the others' 46 ms");
  if (index != 5) return;
  task.set_process("<img src=x onerror=\"document.title='taken'\">");
  task.set_address("</script><script>document.title='taken'</script>:1");
}

void AddPs(int index, wire::JobStatus& status) {
  wire::TaskStatus& task = *status.add_task();
  task.mutable_task()->set_role("ps");
  task.mutable_task()->set_index(index);
  task.set_alive(true);
  task.set_address(absl::StrCat("10.0.2.", index, ":2222"));
  *task.mutable_silence() = Milliseconds(90 * index % 1000);
  wire::PsLoad& load = *task.mutable_ps_load();
  const double share = index == 1 ? 3.1 : 1;
  load.set_operations_per_second(4000 * share);
  load.set_busy_threads(.4 * share);
  load.set_push_bytes_per_second(4.1e7 * share);
  load.set_pull_bytes_per_second(5.3e7 * share);
  if (index == 2) task.set_acted_by("ps/3");
  if (index != 1) return;
  load.mutable_hot_row()->set_table("users");
  load.mutable_hot_row()->set_row(UINT64_MAX);
  load.mutable_hot_row()->set_share(.62);
}

wire::JobStatus LargeJob() {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_end_step(50000);
  status.set_steps_per_epoch(5000);
  status.set_run_id("5f1c0a9b3d77e2c4");
  status.set_learning_rate(.00075);
  status.set_placement_skew(1.07);
  status.set_checkpoint("/checkpoints/criteo/ckpt-000000036000");
  status.set_evaluated_step(35000);
  wire::TaskStatus& chief = *status.add_task();
  chief.mutable_task()->set_role("chief");
  chief.set_alive(true);
  for (int i = 0; i < kWorkers; ++i) AddWorker(i, status);
  for (int i = 0; i < kPs; ++i) AddPs(i, status);
  wire::Finding& first = *status.add_finding();
  first.set_kind(wire::Finding::STOPPED);
  first.set_text(
      "a stopped task, worker/41: not heard for 4.2s: its process "
      "is stopped, or cut off from the chief");
  wire::Finding& second = *status.add_finding();
  second.set_kind(wire::Finding::INPUT);
  second.set_text(
      "the input of worker/3: it waits for batches 190 ms of a "
      "step's 228 ms, other workers 3 ms");
  return status;
}

class JobPageBrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kChromium)) {
      GTEST_SKIP() << kChromium
                   << " is not there: apt-get install chromium runs this test";
    }
    wire::JobStatus status = LargeJob();
    std::vector<Evaluation> evaluations;
    for (int i = 0; i <= 400; ++i) {
      const double gone = i / 60.;
      status.set_global_step(90 * i);
      status.set_loss(.42 + .27 * std::exp(-gone) + .004 * std::sin(17. * i));
      status.set_examples_per_second(5.4e5 + 9e3 * std::sin(i / 7.));
      page_.Show(status);
      clock_.Advance(absl::Seconds(1));
      if (i % 12 != 11) continue;
      evaluations.push_back({.global_step = 90 * i,
                             .metrics = {{"auc", .8 - .12 * std::exp(-gone)}},
                             .loss = .45 + .2 * std::exp(-gone)});
    }
    page_.Show(status);
    page_.Evaluated(evaluations);
    page_.Note("lost worker/17: its lease ran out", true);
    ASSERT_OK_AND_ASSIGN(
        server_,
        PageServer::Start("127.0.0.1", 0, [this](absl::string_view path) {
          return page_.At(path);
        }));
  }

  // Returns what the browser prints.
  std::string Browse(std::vector<std::string> flags) {
    const std::filesystem::path work = getenv("TEST_TMPDIR");
    SubprocessOptions options = {
        .argv = {kChromium, "--headless=new", "--no-sandbox", "--disable-gpu",
                 "--hide-scrollbars", "--virtual-time-budget=5000",
                 absl::StrCat("--user-data-dir=", (work / "browser").string())},
        .environment = {{"HOME", work.string()}}};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.argv.push_back(absl::StrCat("http://127.0.0.1:", server_->port()));
    const absl::StatusOr<CompletedProcess> browser =
        RunSubprocess(options, kBrowserLimit);
    EXPECT_OK(browser);
    return browser.ok() ? browser->standard_output : "";
  }

  SimulatedClock clock_;
  JobPage page_{clock_};
  std::unique_ptr<PageServer> server_;
};

TEST_F(JobPageBrowserTest, AllTasksAreShownAndStrangersTextsStayTexts) {
  const std::string page = Browse({"--dump-dom"});
  EXPECT_THAT(page,
              AllOf(HasSubstr("A stopped task, worker/41"),
                    HasSubstr("201 of 201 tasks, 4 amiss"),
                    HasSubstr("ps/3 acts for it: start it again"),
                    HasSubstr("36,000 / 50,000"), HasSubstr(">worker/175</td>"),
                    HasSubstr("row 18446744073709551615 of users: 62 %"),
                    HasSubstr("lost worker/17"), HasSubstr("<polyline")));
  EXPECT_THAT(page, AllOf(HasSubstr("&lt;img src=x onerror="),
                          HasSubstr("<title>Parasol: 72 %</title>"),
                          Not(HasSubstr("<img"))));
}

TEST_F(JobPageBrowserTest, PicturesForPeople) {
  const char* outputs = getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const std::filesystem::path directory =
      outputs == nullptr ? getenv("TEST_TMPDIR") : outputs;
  const struct {
    std::string name;
    std::vector<std::string> flags;
  } pictures[] = {
      {"page.png", {"--window-size=1100,800"}},
      {"page_dark.png",
       {"--window-size=1280,1000", "--blink-settings=preferredColorScheme=0"}},
      {"page_phone.png", {"--window-size=390,1900"}}};
  for (const auto& [name, flags] : pictures) {
    std::vector<std::string> all = flags;
    const std::filesystem::path picture = directory / name;
    all.push_back(absl::StrCat("--screenshot=", picture.string()));
    Browse(all);
    ASSERT_TRUE(std::filesystem::exists(picture)) << name;
    // An empty page has less.
    EXPECT_GT(std::filesystem::file_size(picture), 30'000u) << name;
  }
}

}  // namespace
}  // namespace parasol
