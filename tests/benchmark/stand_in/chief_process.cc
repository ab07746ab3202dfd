#include "tests/benchmark/stand_in/chief_process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "deploy/local/loopback_ports.h"

namespace parasol {
namespace {

// A table, of which each ps has rows, and data that nobody reads.
constexpr char kJob[] = R"(
name: "stand_in"
seed: 1
model {
  input { name: "features" ids {} }
  layer { name: "logit" embedding_bag { table: "weights" use_bias: true } }
  loss { binary_crossentropy {} }
  sparse_table { name: "weights" width: 1 initializer { zeros {} } }
}
train { libsvm { file: "data" } batch_size: 1 }
optimizer { sgd { learning_rate: 0.1 } }
end { steps: 1000000000000 }
checkpoint { every_seconds: 86400 }
)";

std::string AddressList(const std::vector<std::string>& addresses) {
  return absl::StrCat("[\"", absl::StrJoin(addresses, "\",\""), "\"]");
}

std::string TfConfigOf(const std::string& chief, const StandInPs& ps,
                       int workers) {
  std::vector<std::string> ps_addresses;
  for (const int port : ps.ports()) {
    ps_addresses.push_back(absl::StrCat("127.0.0.1:", port));
  }
  // Nobody connects to a worker.
  std::vector<std::string> worker_addresses;
  for (int i = 0; i < workers; ++i) {
    worker_addresses.push_back(
        absl::StrCat("127.9.", i / 250, ".", i % 250 + 1, ":2222"));
  }
  return absl::StrCat(R"({"cluster":{"chief":[")", chief, R"("],"ps":)",
                      AddressList(ps_addresses), R"(,"worker":)",
                      AddressList(worker_addresses),
                      R"(},"task":{"type":"chief","index":0}})");
}

}  // namespace

ProcessUse ProcessUse::Of(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  std::ifstream file(folder + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  // Fields of proc(5), less 3.
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipEmpty());
  const auto number = [&fields](size_t field) {
    int64_t value = 0;
    return field < fields.size() && absl::SimpleAtoi(fields[field], &value)
               ? value
               : 0;
  };
  std::error_code gone;
  const std::filesystem::directory_iterator descriptors(folder + "/fd", gone);
  ProcessUse use;
  use.threads = number(17);
  use.resident_bytes = number(21) * sysconf(_SC_PAGESIZE);
  use.cpu = absl::Seconds(number(11) + number(12)) / sysconf(_SC_CLK_TCK);
  use.descriptors = gone ? 0 : std::distance(begin(descriptors), {});
  return use;
}

absl::StatusOr<std::unique_ptr<MeasuredChief>> MeasuredChief::Start(
    const Options& options, const StandInPs& ps) {
  std::filesystem::create_directories(options.directory);
  const std::string job = options.directory + "/job.txt";
  std::ofstream(job) << kJob << "parameter_server { "
                     << options.parameter_server << " }\n";
  std::ofstream(options.directory + "/data") << "1 1:0.5\n0 2:0.5\n";
  ASSIGN_OR_RETURN(const std::vector<int> port, FreeLoopbackPorts(1));
  const std::string address = absl::StrCat("127.0.0.1:", port[0]);
  SubprocessOptions process;
  process.argv = {options.binary, "--job=" + job,
                  "--checkpoint_dir=" + options.directory + "/checkpoints",
                  "--data_dir=" + options.directory,
                  "--metrics_address=127.0.0.1:0"};
  process.environment["TF_CONFIG"] = TfConfigOf(address, ps, options.workers);
  process.standard_error = OutputTo::File(options.directory + "/chief.log");
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  if (options.soft_descriptors > 0) {
    rlimit low = before;
    low.rlim_cur = options.soft_descriptors;
    setrlimit(RLIMIT_NOFILE, &low);
  }
  auto started = Subprocess::Start(process);
  setrlimit(RLIMIT_NOFILE, &before);
  if (!started.ok()) return started.status();
  return std::unique_ptr<MeasuredChief>(
      new MeasuredChief(address, *std::move(started)));
}

absl::StatusOr<std::unique_ptr<MeasuredPs>> MeasuredPs::Start(
    const std::string& binary, const std::string& directory) {
  std::filesystem::create_directories(directory);
  ASSIGN_OR_RETURN(const std::vector<int> port, FreeLoopbackPorts(1));
  std::unique_ptr<MeasuredPs> ps(new MeasuredPs());
  ps->address_ = absl::StrCat("127.0.0.1:", port[0]);
  SubprocessOptions process;
  process.argv = {binary, "--metrics_address=127.0.0.1:0"};
  process.environment["TF_CONFIG"] = absl::StrCat(
      R"({"cluster":{"chief":["127.0.0.1:)", ps->chief_.port(), R"("],"ps":[")",
      ps->address_,
      R"("],"worker":["127.0.0.1:1"]},"task":{"type":"ps","index":0}})");
  process.standard_error = OutputTo::File(directory + "/ps.log");
  ASSIGN_OR_RETURN(ps->process_, Subprocess::Start(process));
  ps->incarnation_ = ps->chief_.AwaitPs(absl::Minutes(1));
  if (ps->incarnation_ == 0) {
    return absl::DeadlineExceededError(absl::StrCat(
        binary, " has not registered in a minute: see ", directory, "/ps.log"));
  }
  return ps;
}

}  // namespace parasol
