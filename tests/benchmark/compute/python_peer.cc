#include "tests/benchmark/compute/python_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Importing PyTorch and the first step of a large model on a busy machine.
constexpr absl::Duration kAnswerLimit = absl::Minutes(5);

absl::Status SystemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> MakeFifo() {
  std::string directory = "/tmp/compute_plane_XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return SystemError(directory);
  const std::string path = directory + "/orders";
  if (mkfifo(path.c_str(), S_IRUSR | S_IWUSR) != 0) return SystemError(path);
  return path;
}

std::vector<std::string> ToArguments(const PythonPeer::Options& options) {
  std::vector<std::string> arguments = {
      options.python,
      options.script,
      absl::StrCat("--threads=", options.threads),
      absl::StrCat("--device=", options.device),
      absl::StrCat("--precision=", options.precision),
      absl::StrCat("--variants=", options.variants)};
  if (options.cpu_time) arguments.push_back("--cpu_time");
  return arguments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PythonPeer>> PythonPeer::Start(
    const Options& options) {
  if (access(options.script.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("no script ", options.script));
  }
  ASSIGN_OR_RETURN(std::string fifo, MakeFifo());
  std::unique_ptr<PythonPeer> peer(new PythonPeer(std::move(fifo)));
  // For reading too: opening it does not wait for the child then, nor does the
  // child wait for this.
  const int orders = open(peer->orders_path_.c_str(), O_RDWR | O_CLOEXEC);
  if (orders < 0) return SystemError(peer->orders_path_);
  peer->orders_ = fdopen(orders, "w");
  SubprocessOptions process = {.argv = ToArguments(options),
                               .standard_output = OutputTo::Pipe()};
  process.argv.push_back(absl::StrCat("--orders=", peer->orders_path_));
  ASSIGN_OR_RETURN(peer->process_, Subprocess::Start(process));
  ASSIGN_OR_RETURN(peer->version_, peer->ReadLine());
  return peer;
}

PythonPeer::~PythonPeer() {
  if (orders_ != nullptr) std::fclose(orders_);
  unlink(orders_path_.c_str());
  rmdir(orders_path_.substr(0, orders_path_.rfind('/')).c_str());
}

absl::StatusOr<absl::Duration> PythonPeer::MedianStep(
    absl::string_view workload, absl::Duration time) {
  const std::string order =
      absl::StrCat(workload, " ", absl::ToDoubleSeconds(time), "\n");
  if (std::fputs(order.c_str(), orders_) < 0 || std::fflush(orders_) != 0) {
    return SystemError("the order to the Python peer");
  }
  ASSIGN_OR_RETURN(const std::string answer, ReadLine());
  double seconds = 0;
  if (!absl::SimpleAtod(answer, &seconds) || seconds <= 0) {
    return absl::UnavailableError(
        absl::StrCat("the Python peer answered \"", answer, "\""));
  }
  return absl::Seconds(seconds);
}

absl::StatusOr<std::string> PythonPeer::ReadLine() {
  std::string line;
  char c = 0;
  pollfd pipe = {.fd = process_->output_pipe(), .events = POLLIN, .revents = 0};
  while (true) {
    if (poll(&pipe, 1, absl::ToInt64Milliseconds(kAnswerLimit)) != 1) {
      return absl::DeadlineExceededError(
          absl::StrCat("the Python peer did not answer in ",
                       absl::FormatDuration(kAnswerLimit)));
    }
    if (read(pipe.fd, &c, 1) != 1) {
      return absl::UnavailableError("the Python peer ended");
    }
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace parasol
