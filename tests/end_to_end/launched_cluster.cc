#include "tests/end_to_end/launched_cluster.h"

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/chief_client.h"
#include "cluster/trust/job_token.h"
#include "cluster/trust/token_store.h"
#include "cluster/trust/trust.h"
#include "cluster/trust/trust_flags.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

std::string FreshDirectory() {
  static std::atomic<int> count{0};
  const fs::path path = fs::path(getenv("TEST_TMPDIR")) /
                        absl::StrCat("cluster-", count.fetch_add(1));
  fs::create_directories(path);
  return path;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns what follows the name in a process's or thread's "stat", which is
// "pid (name) state ppid …". Empty if it is gone.
std::vector<std::string> StatOf(const fs::path& process) {
  const std::string stat = ReadFile(process / "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  return absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
}

// Returns whether no thread of a process runs any more. A thread that SIGSTOP
// finds in a system call, a rename for example, ends the call first.
bool HasStopped(pid_t pid) {
  std::error_code gone;
  for (const auto& thread :
       fs::directory_iterator(absl::StrCat("/proc/", pid, "/task"), gone)) {
    const std::vector<std::string> fields = StatOf(thread.path());
    if (!fields.empty() && fields[0] != "T") return false;
  }
  return true;
}

pid_t ParentOf(const fs::path& process) {
  const std::vector<std::string> fields = StatOf(process);
  int parent = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &parent)) return 0;
  // A child that has ended and was not waited for is no task any more.
  return fields[0] == "Z" ? 0 : parent;
}

// Returns true for a worker without a cluster.
bool IsLoneWorker(const fs::path& process) {
  return absl::StrContains(ReadFile(process / "cmdline"), "--status_address=");
}

nlohmann::json TfConfigOf(const fs::path& process) {
  const std::string environment = ReadFile(process / "environ");
  for (const absl::string_view entry : absl::StrSplit(environment, '\0')) {
    if (entry.substr(0, 10) == "TF_CONFIG=") {
      return nlohmann::json::parse(entry.substr(10), nullptr,
                                   /*allow_exceptions=*/false);
    }
  }
  return {};
}

std::vector<fs::path> ChildrenOf(pid_t parent) {
  std::vector<fs::path> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    int pid = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &pid) &&
        ParentOf(entry.path()) == parent) {
      children.push_back(entry.path());
    }
  }
  return children;
}

}  // namespace

std::string BinaryPath(const std::string& relative) {
  return fs::absolute(relative);  // a test starts in its runfiles
}

std::string DigitsDirectory() {
  static const auto* const directory = new std::string([] {
    const fs::path path = fs::path(getenv("TEST_TMPDIR")) / "digits";
    const auto made =
        RunSubprocess({.argv = {BinaryPath("deploy/local/make_digits"),
                                absl::StrCat("--out=", path.string()),
                                "--train=4000", "--test=1000"}},
                      absl::Minutes(1));
    CHECK(made.ok()) << made.status();
    CHECK_EQ(made->end.code(), 0) << made->standard_error;
    return path.string();
  }());
  return *directory;
}

std::string DigitsJob() {
  return R"(
    name: "digits"
    seed: 7
    model {
      input_shape: 28 input_shape: 28
      layer { flatten {} }
      layer { name: "hidden" dense { units: 64 activation: RELU } }
      layer { name: "logits" dense { units: 10 } }
      loss { sparse_categorical_crossentropy {} }
    }
    train {
      idx {
        images: "train-images-idx3-ubyte.gz"
        labels: "train-labels-idx1-ubyte.gz"
      }
      batch_size: 32
    }
    eval {
      idx {
        images: "t10k-images-idx3-ubyte.gz"
        labels: "t10k-labels-idx1-ubyte.gz"
      }
      batch_size: 500
    }
    optimizer { adam { learning_rate: 0.001 } }
    end { steps: 600 }
    checkpoint { every_steps: 100 }
  )";
}

absl::Status WaitUntil(const std::string& what,
                       const std::function<bool()>& condition,
                       absl::Duration limit) {
  Clock& clock = Clock::Real();
  const absl::Time deadline = clock.Now() + limit;
  while (!condition()) {
    if (clock.Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          what, " has not happened in ", absl::FormatDuration(limit)));
    }
    clock.Pause(kPollInterval);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LaunchedCluster>> LaunchedCluster::Start(
    Options options) {
  std::unique_ptr<LaunchedCluster> cluster(new LaunchedCluster);
  const fs::path directory = FreshDirectory();
  cluster->checkpoint_dir_ = options.checkpoint_dir.empty()
                                 ? (directory / "checkpoints").string()
                                 : options.checkpoint_dir;
  cluster->output_ = directory / "stdout";
  cluster->progress_ = directory / "stderr";
  cluster->log_dir_ = directory / "logs";
  const fs::path job = directory / "job.textproto";
  std::ofstream(job) << options.job;
  SubprocessOptions launcher;
  launcher.argv = {BinaryPath("deploy/local/launcher"),
                   absl::StrCat("--job=", job.string()),
                   absl::StrCat("--data_dir=", options.data_dir),
                   absl::StrCat("--checkpoint_dir=", cluster->checkpoint_dir_),
                   absl::StrCat("--log_dir=", cluster->log_dir_),
                   absl::StrCat("--bin_dir=", fs::current_path().string()),
                   absl::StrCat("--ps=", options.num_ps),
                   absl::StrCat("--workers=", options.num_workers)};
  for (const std::string& value : options.overrides) {
    launcher.argv.push_back(absl::StrCat("--set=", value));
  }
  for (const std::string& flag : options.flags) {
    launcher.argv.push_back(flag);
  }
  launcher.standard_output = OutputTo::File(cluster->output_);
  launcher.standard_error = OutputTo::File(cluster->progress_);
  ASSIGN_OR_RETURN(cluster->launcher_, Subprocess::Start(launcher));
  return cluster;
}

std::string LaunchedCluster::LogOf(const std::string& task) const {
  return ReadFile(
      fs::path(log_dir_) /
      absl::StrCat(absl::StrReplaceAll(task, {{"/", "-"}}), ".log"));
}

std::string LaunchedCluster::Progress() const { return ReadFile(progress_); }

std::map<std::string, pid_t> LaunchedCluster::Tasks() const {
  std::map<std::string, pid_t> tasks;
  for (const fs::path& process : ChildrenOf(launcher_->pid())) {
    int pid = 0;
    if (!absl::SimpleAtoi(process.filename().string(), &pid)) continue;
    if (IsLoneWorker(process)) tasks["worker/0"] = pid;
    const nlohmann::json config = TfConfigOf(process);
    if (!config.is_object() || !config.contains("task")) continue;
    const nlohmann::json& task = config["task"];
    tasks[absl::StrCat(task["type"].get<std::string>(), "/",
                       task["index"].get<int>())] = pid;
  }
  return tasks;
}

absl::Status LaunchedCluster::Signal(const std::string& task, int signal) {
  const std::map<std::string, pid_t> tasks = Tasks();
  const auto found = tasks.find(task);
  if (found == tasks.end() || kill(found->second, signal) != 0) {
    return absl::NotFoundError(absl::StrCat(task, " is not running"));
  }
  if (signal != SIGSTOP) return absl::OkStatus();
  return WaitUntil(absl::StrCat("a stop of ", task),
                   [&] { return HasStopped(found->second); });
}

absl::StatusOr<wire::JobStatus> LaunchedCluster::Status() const {
  for (const fs::path& process : ChildrenOf(launcher_->pid())) {
    const nlohmann::json config = TfConfigOf(process);
    if (!config.is_object() || !config.contains("cluster")) continue;
    const nlohmann::json& jobs = config["cluster"];
    const std::string address =
        jobs[jobs.contains("chief") ? "chief" : "worker"][0];
    ASSIGN_OR_RETURN(
        const JobToken token,
        JobToken::Read(FindToken(TokenFoldersOfUser(), address).value_or("")));
    return ChiefClient::Create(
               address, absl::Seconds(5),
               Callee::Chief(Trust::OfToken(token, PeerRole::kOperator,
                                            /*index=*/0, Clock::Real())))
        ->GetStatus();
  }
  return absl::UnavailableError("no task is running");
}

absl::Status LaunchedCluster::AwaitStep(int64_t step) {
  return WaitUntil(absl::StrCat("step ", step), [&] {
    const absl::StatusOr<wire::JobStatus> status = Status();
    return status.ok() && status->global_step() >= step;
  });
}

absl::StatusOr<LaunchedCluster::Result> LaunchedCluster::Wait(
    absl::Duration limit) {
  ASSIGN_OR_RETURN(const ProcessEnd end, launcher_->Wait(limit),
                   _ << ReadFile(progress_));
  Result result;
  result.exit_code = end.code();
  result.progress = ReadFile(progress_);
  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(output_), '\n', absl::SkipEmpty());
  if (!lines.empty()) result.json = lines.back();
  return result;
}

}  // namespace parasol
