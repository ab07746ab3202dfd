#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/command_line.h"
#include "base/log.h"
#include "base/log_fields.h"
#include "base/process.h"
#include "base/resource_limits.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/check/start_check.h"
#include "cluster/cluster_spec/compute_flags.h"
#include "cluster/cluster_spec/data_cache_flag.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "cluster/job/strategy.h"
#include "cluster/trust/token_store.h"
#include "deploy/local/complete_run.h"
#include "deploy/local/local_run.h"
#include "deploy/local/run_directory.h"
#include "deploy/resolver/hosts.h"
#include "ml/input/object/object_uri.h"
#include "storage/directory_lock.h"

ABSL_DECLARE_FLAG(parasol::LogFormat, log_format);
ABSL_FLAG(std::string, job, "", "The job: a textproto (docs/job.md).");
ABSL_FLAG(std::string, data_dir, ".",
          "Where the files are that the job's data sets name.");
ABSL_FLAG(int32_t, ps, 1,
          "How many parameter servers; with 0 the workers train without any "
          "(multi_worker_mirrored).");
ABSL_FLAG(int32_t, workers, 1, "How many workers.");
ABSL_FLAG(std::string, strategy, "",
          "parameter_server, multi_worker_mirrored or hybrid; or default, "
          "one_device, mirrored or central_storage, under which one worker "
          "trains by itself; empty: the job's.");
ABSL_FLAG(bool, evaluator, true, "Run an evaluator beside the training.");
ABSL_FLAG(
    std::string, checkpoint_dir, "",
    "Where checkpoints are written and read; an existing one is gone on "
    "from. Empty: a fresh directory for this run below "
    "${XDG_DATA_HOME:-$HOME/.local/share}/parasol/runs, which is printed; "
    "the ten newest runs there are kept.");
ABSL_FLAG(parasol::RepeatedFlag, set, {},
          "path=value: changes a field of the job, e.g. "
          "end.steps=100 or train.batch_size=64. May be given several times.");
ABSL_FLAG(std::string, device, "auto",
          "Where workers and evaluator compute: auto, cpu or cuda:0.");
ABSL_FLAG(int32_t, threads, 1,
          "Number of CPU threads that compute, of each worker and of the "
          "evaluator.");
ABSL_FLAG(std::string, log_dir, "",
          "One log file per task; empty: <checkpoint_dir>/logs.");
ABSL_FLAG(absl::Duration, checkpoint_timeout, absl::Minutes(10),
          "How long the first and the last checkpoint are tried.");
ABSL_FLAG(std::string, bin_dir, "",
          "Where the roles' binaries are (ps/ps, worker/worker, …); empty: "
          "where this one was built.");
ABSL_FLAG(
    std::string, hosts, "",
    "Machines to run the tasks on, over ssh: a,b:2,c deals the ps in turn "
    "to a, b, b and c, and so the workers. Empty: this machine. All need "
    "--checkpoint_dir, --job and the binaries at the same paths.");
ABSL_FLAG(
    std::string, ssh, "",
    "The ssh command for --hosts, e.g. 'ssh -p 2222'; empty: ssh. It must "
    "not ask for a password.");
ABSL_FLAG(std::string, remote_dir, "",
          "Where --hosts have the binaries; empty: as --bin_dir.");
ABSL_FLAG(int32_t, base_port, 8888,
          "With --hosts: the first port that tasks take on each of them, two "
          "for each task.");
ABSL_FLAG(std::string, worker_binary, "",
          "A worker with code of your own (docs/examples/custom_model); "
          "empty: --bin_dir's.");
ABSL_FLAG(std::string, evaluator_binary, "",
          "An evaluator with code of your own; empty: --bin_dir's.");
ABSL_FLAG(std::string, ps_binary, "",
          "A ps with an optimizer of your own; empty: --bin_dir's.");

namespace parasol {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    "Runs a job on this machine, or with --hosts on others: a chief, parameter "
    "servers, workers and an evaluator as processes of their own. Starts again "
    "what dies, shows the "
    "progress on stderr and ends with the job. The last line on stdout is the "
    "result as JSON.\n"
    "\n"
    "  launch --job=docs/examples/quickstart.textproto --data_dir=DIR --ps=2 "
    "--workers=2\n"
    "  launch --hosts=a,b,c --ps=3 --workers=6 --job=/nfs/job.textproto "
    "--data_dir=/data --checkpoint_dir=/nfs/ckpt\n"
    "\n"
    "Exit code: 0 done; 1 the job failed; 2 bad flags or job; 130 or 143 "
    "stopped.";

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string UsersRunsRoot() {
  return RunsRoot(Environment("XDG_DATA_HOME"), Environment("HOME"));
}

// For a user without a home: not cleaned by this program.
absl::StatusOr<std::string> TemporaryDir() {
  std::error_code error;
  const fs::path root = fs::temp_directory_path(error);
  if (error) {
    const std::string variable = Environment("TMPDIR");
    return absl::InvalidArgumentError(absl::StrCat(
        "TMPDIR=", variable.empty() ? "/tmp" : variable,
        ": is no directory for temporary files; set --checkpoint_dir"));
  }
  std::string path = (root / "parasol-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "can't make ", path, ": ", strerror(errno), "; set --checkpoint_dir"));
  }
  return path;
}

// Names a path wherever a process is that is given it.
absl::StatusOr<std::string> AbsolutePath(absl::string_view flag,
                                         const std::string& path) {
  if (IsUri(path)) {
    if (flag == "data_dir" || flag == "checkpoint_dir") return path;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, "=", path,
                     ": only data and checkpoints are in object stores; name "
                     "a path of this machine"));
  }
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (!error) return absolute.string();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", path, ": the working directory can't be ",
                   "found (", error.message(), "); change to one that is there",
                   ", or give a path that begins with /"));
}

absl::StatusOr<std::string> FreshCheckpointDir() {
  const std::string root = UsersRunsRoot();
  if (root.empty()) return TemporaryDir();
  absl::StatusOr<std::string> run = MakeRunDirectory(root, Clock::Real().Now());
  if (run.ok()) return run;
  absl::StatusOr<std::string> temporary = TemporaryDir();
  if (!temporary.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        run.status().message(), "; ", temporary.status().message()));
  }
  fprintf(stderr, "%s; the checkpoints go to a temporary directory\n",
          std::string(run.status().message()).c_str());
  return temporary;
}

// Removes old runs if this run, which is in use by now, has a fresh directory.
void CleanUpBehind(const std::string& checkpoint_dir) {
  const std::string root = UsersRunsRoot();
  const bool is_fresh = absl::GetFlag(FLAGS_checkpoint_dir).empty() &&
                        fs::path(checkpoint_dir).parent_path() == root;
  if (!is_fresh) return;
  if (const size_t removed = RemoveOldRuns(root); removed > 0) {
    fprintf(stderr, "old runs removed from %s: %zu (the %zu newest stay)\n",
            root.c_str(), removed, kKeptRuns);
  }
}

// Makes the directory of the flag, if it is missing.
absl::Status MakeDirectory(absl::string_view flag, const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", path, ": ", error.message(),
                   "; name a directory that can be written"));
}

absl::Status CheckExists(absl::string_view flag, const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "--", flag, "=", path, ": there is no such file; correct the path"));
}

// bazel-bin/deploy/local/launcher lies two levels below the roles' folders.
std::string BinDirOfThisBinary() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path().parent_path().string();
}

// The absolute path of a flag's file, which must be there; empty if not given.
absl::StatusOr<std::string> FileOf(absl::string_view flag,
                                   const std::string& value) {
  if (value.empty()) return value;
  ASSIGN_OR_RETURN(const std::string path, AbsolutePath(flag, value));
  RETURN_IF_ERROR(CheckExists(flag, path));
  return path;
}

// Number of replicas whose examples make one step.
int ReplicasOf(const job::Job& job) {
  const job::ParameterServerStrategy& mode = job.parameter_server();
  return mode.has_synchronous() ? mode.synchronous().replicas_to_aggregate()
                                : 1;
}

// Gives the job its strategy of one process, and sets what depends on the
// number of replicas.
absl::Status ResolveAlone(StrategyKind kind, job::Job& job, LocalJob& local) {
  ChooseStrategy(kind, job);
  ASSIGN_OR_RETURN(const ProcessReplicas replicas,
                   ResolveProcessReplicas(job, local.device));
  const int number = static_cast<int>(replicas.devices.size());
  RETURN_IF_ERROR(SetReplicas(number, job));
  local.is_alone = true;
  local.batch_size = job.train().batch_size() * number;
  return absl::OkStatus();
}

// Says which of the tasks of the flags the strategy has not. The flags'
// defaults are one of each.
void SayWhatIsNotStarted(StrategyKind kind, const LocalJob& local) {
  const std::string name(StrategyName(kind));
  if (IsLocal(kind) && local.num_workers > 1) {
    fprintf(stderr, "--workers=%d: %s trains in one process; one is started\n",
            local.num_workers, name.c_str());
  }
  const bool has_ps =
      !IsLocal(kind) && kind != StrategyKind::kMultiWorkerMirrored;
  if (!has_ps && local.num_ps > 1) {
    fprintf(stderr, "--ps=%d: %s has no ps; none is started\n", local.num_ps,
            name.c_str());
  }
}

// Under multi_worker_mirrored, by the flag or by the job, there are no ps, and
// under a strategy of one process no other tasks than a worker.
absl::Status ResolveStrategyOf(job::Job& job, LocalJob& local) {
  std::optional<StrategyKind> flag;
  if (!local.strategy.empty()) {
    flag = StrategyNamed(local.strategy);
    if (!flag) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--strategy=", local.strategy, ": must be ", StrategyNames()));
    }
  }
  const StrategyKind kind =
      flag.value_or(StrategyOf(job).value_or(StrategyOfCluster(local.num_ps)));
  SayWhatIsNotStarted(kind, local);
  if (IsLocal(kind)) {
    RETURN_IF_ERROR(ResolveAlone(kind, job, local));
    return absl::OkStatus();
  }
  if (kind == StrategyKind::kMultiWorkerMirrored) local.num_ps = 0;
  RETURN_IF_ERROR(ResolveClusterStrategy(flag, local.num_ps, job));
  // Other hosts have devices of their own.
  if (absl::GetFlag(FLAGS_hosts).empty()) {
    RETURN_IF_ERROR(ResolveWorkerDevices(job, local.device).status());
  }
  local.is_hybrid = IsHybrid(job);
  RETURN_IF_ERROR(FillClusterDefaults(job, local.num_workers));
  local.batch_size = job.train().batch_size() * ReplicasOf(job);
  return absl::OkStatus();
}

// Reads the flags of tasks on other machines. They have the binaries, and this
// one need not.
absl::Status ReadHostFlags(LocalJob& job) {
  if (absl::GetFlag(FLAGS_hosts).empty()) {
    if (absl::GetFlag(FLAGS_ssh).empty() &&
        absl::GetFlag(FLAGS_remote_dir).empty()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "--ssh, --remote_dir: need --hosts beside them");
  }
  ASSIGN_OR_RETURN(job.hosts, ParseHosts(absl::GetFlag(FLAGS_hosts)),
                   _ << "--hosts");
  job.ssh = absl::GetFlag(FLAGS_ssh).empty() ? "ssh" : absl::GetFlag(FLAGS_ssh);
  job.base_port = absl::GetFlag(FLAGS_base_port);
  if (job.base_port < 1 || job.base_port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--base_port=", job.base_port, ": give a port, 1 to 65535"));
  }
  if (absl::GetFlag(FLAGS_checkpoint_dir).empty()) {
    return absl::InvalidArgumentError(
        "--checkpoint_dir is missing: with --hosts it is a directory that all "
        "of them and this machine share, or s3://bucket/path");
  }
  if (const std::string dir = absl::GetFlag(FLAGS_remote_dir); !dir.empty()) {
    ASSIGN_OR_RETURN(job.bin_dir, AbsolutePath("remote_dir", dir));
  }
  return absl::OkStatus();
}

// How many tasks there are, and how many threads each has.
absl::Status ReadNumberFlags(LocalJob& job) {
  job.num_ps = absl::GetFlag(FLAGS_ps);
  job.num_workers = absl::GetFlag(FLAGS_workers);
  // The strategy says how many ps are needed.
  if (job.num_ps < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ps=", job.num_ps, ": at least 0"));
  }
  if (job.num_workers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workers=", job.num_workers, ": at least one"));
  }
  if (job.num_ps > kMaxProcesses || job.num_workers > kMaxProcesses) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ps=", job.num_ps, " --workers=", job.num_workers,
                     ": at most ", kMaxProcesses, " of each"));
  }
  job.threads = absl::GetFlag(FLAGS_threads);
  if (job.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads=", job.threads, ": at least one"));
  }
  return absl::OkStatus();
}

// Loads the job, so that a mistake in it or in its data is told before anything
// starts, and fills in `job` what follows from it.
absl::StatusOr<LoadedJob> LoadJobToRun(LocalJob& job, bool has_data) {
  const auto fit = [&job](std::optional<size_t>, job::Job& fitted) {
    return ResolveStrategyOf(fitted, job);
  };
  const std::string checkpoint_dir = absl::GetFlag(FLAGS_checkpoint_dir);
  ASSIGN_OR_RETURN(
      LoadedJob loaded,
      LoadCheckedJob({.path = job.job_file,
                      .overrides = job.overrides,
                      .options = {.data_dir = has_data ? job.data_dir : "",
                                  .workers = job.num_workers,
                                  .ps = job.num_ps,
                                  .fit = fit,
                                  .code_is_elsewhere = true},
                      .checkpoint_directory = checkpoint_dir},
                     [](const std::string& line, bool is_warning) {
                       fprintf(stderr, "%s%s\n", is_warning ? "warning: " : "",
                               line.c_str());
                     }));
  RETURN_IF_ERROR(ResolveStrategyOf(loaded.job, job));
  return loaded;
}

// Fills in `loaded`, too.
absl::StatusOr<LocalJob> LocalJobFromFlags(LoadedJob& loaded) {
  LocalJob job;
  if (absl::GetFlag(FLAGS_job).empty()) {
    return absl::InvalidArgumentError("--job is missing; try --help");
  }
  job.strategy = absl::GetFlag(FLAGS_strategy);
  job.token_folders = TokenFolders(Environment("XDG_DATA_HOME"),
                                   Environment("HOME"), geteuid());
  RETURN_IF_ERROR(ReadNumberFlags(job));
  ASSIGN_OR_RETURN(job.job_file, AbsolutePath("job", absl::GetFlag(FLAGS_job)));
  ASSIGN_OR_RETURN(job.data_dir,
                   AbsolutePath("data_dir", absl::GetFlag(FLAGS_data_dir)));
  RETURN_IF_ERROR(CheckExists("job", job.job_file));
  job.has_evaluator = absl::GetFlag(FLAGS_evaluator);
  job.device = absl::GetFlag(FLAGS_device);
  job.overrides = absl::GetFlag(FLAGS_set).values;
  job.checkpoint_timeout =
      absl::FormatDuration(absl::GetFlag(FLAGS_checkpoint_timeout));
  // Other hosts may have data that this one has not.
  const bool has_data = absl::GetFlag(FLAGS_hosts).empty();
  if (has_data) {
    RETURN_IF_ERROR(CheckDataDirFlag(job.data_dir));
  }
  if (const std::string dir = absl::GetFlag(FLAGS_data_cache_dir);
      !dir.empty()) {
    ASSIGN_OR_RETURN(job.data_cache_dir, AbsolutePath("data_cache_dir", dir));
  }
  job.bin_dir = BinDirOfThisBinary();
  if (const std::string dir = absl::GetFlag(FLAGS_bin_dir); !dir.empty()) {
    ASSIGN_OR_RETURN(job.bin_dir, AbsolutePath("bin_dir", dir));
  }
  RETURN_IF_ERROR(ReadHostFlags(job));
  ASSIGN_OR_RETURN(loaded, LoadJobToRun(job, has_data));
  if (job.is_alone && !job.hosts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--hosts=", absl::GetFlag(FLAGS_hosts),
        ": the job's strategy trains in one process; leave --hosts out, or "
        "choose another one with --strategy"));
  }
  job.applies_non_finite =
      loaded.job.worker().non_finite_loss() == job::WorkerSettings::CONTINUE;
  ASSIGN_OR_RETURN(job.worker_binary,
                   FileOf("worker_binary", absl::GetFlag(FLAGS_worker_binary)));
  ASSIGN_OR_RETURN(
      job.evaluator_binary,
      FileOf("evaluator_binary", absl::GetFlag(FLAGS_evaluator_binary)));
  ASSIGN_OR_RETURN(job.ps_binary,
                   FileOf("ps_binary", absl::GetFlag(FLAGS_ps_binary)));
  job.checkpoint_dir = absl::GetFlag(FLAGS_checkpoint_dir);
  if (job.checkpoint_dir.empty()) {
    ASSIGN_OR_RETURN(job.checkpoint_dir, FreshCheckpointDir());
    fprintf(stderr, "checkpoints: %s\n", job.checkpoint_dir.c_str());
  }
  ASSIGN_OR_RETURN(job.checkpoint_dir,
                   AbsolutePath("checkpoint_dir", job.checkpoint_dir));
  job.log_dir = absl::StrCat(job.checkpoint_dir, "/logs");
  if (const std::string dir = absl::GetFlag(FLAGS_log_dir); !dir.empty()) {
    ASSIGN_OR_RETURN(job.log_dir, AbsolutePath("log_dir", dir));
  } else if (IsUri(job.checkpoint_dir)) {
    ASSIGN_OR_RETURN(job.log_dir, TemporaryDir());
    fprintf(stderr, "logs: %s\n", job.log_dir.c_str());
  }
  if (!IsUri(job.checkpoint_dir)) {
    RETURN_IF_ERROR(MakeDirectory("checkpoint_dir", job.checkpoint_dir));
  }
  RETURN_IF_ERROR(MakeDirectory("log_dir", job.log_dir));
  return job;
}

absl::StatusOr<RunResult> RunFromFlags(TerminationSignal& signals) {
  LoadedJob loaded;
  ASSIGN_OR_RETURN(const LocalJob job, LocalJobFromFlags(loaded));
  // Another launcher must not take this run for an old one.
  std::optional<DirectoryLock> in_use;
  if (!IsUri(job.checkpoint_dir)) {
    ASSIGN_OR_RETURN(in_use, DirectoryLock::Share(job.checkpoint_dir));
    CleanUpBehind(job.checkpoint_dir);
  }
  std::optional<RunResult> complete = FindCompleteRun(
      loaded, job.checkpoint_dir, job.has_evaluator || job.is_alone);
  if (complete) return *std::move(complete);
  return RunJob(job, signals, Clock::Real());
}

RunResult FailedAtStart(const absl::Status& status) {
  RunResult result;
  result.status = RunResult::Status::kFailed;
  result.error = OneLine(status.message());
  result.exit_code = static_cast<int>(ExitCodeFor(status));
  return result;
}

// Ends stderr with the reason of a failure as a line of the log, if that is
// JSON; as text the summary has it.
void LogReason(const RunResult& result) {
  if (result.status != RunResult::Status::kFailed ||
      absl::GetFlag(FLAGS_log_format) != LogFormat::kJson) {
    return;
  }
  LOG(ERROR) << result.error
             << LogFields()
                    .AddText("binary", program_invocation_short_name)
                    .AddCount("exit_code", result.exit_code);
}

int Main(int argc, char** argv) {
  const std::vector<std::string> rest = ParseCommandLine(argc, argv, kUsage);
  ApplySystemLimits();
  ApplyDataCacheFlag();
  if (!rest.empty()) {
    return ExitWith(absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", rest[0], "; try --help")));
  }
  TerminationSignal signals(TerminationSignal::EndCode::kOfFirst);
  const absl::StatusOr<RunResult> run = RunFromFlags(signals);
  const RunResult result = run.ok() ? *run : FailedAtStart(run.status());
  fprintf(stderr, "%s", Summary(result).c_str());
  LogReason(result);
  printf("%s\n", ToJson(result).c_str());
  return result.exit_code;
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  const int exit_code = parasol::Main(argc, argv);
  // Static objects are not destroyed: gRPC's threads may still take down the
  // connection to a chief that has just ended.
  fflush(nullptr);
  _exit(exit_code);
}
