#include "tests/benchmark/worker_process.h"

#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/server_process.h"
#include "tests/benchmark/tcp_contender.h"

ABSL_FLAG(int, port, 0, "For --work: the server's.");
ABSL_FLAG(uint64_t, worker, 0, "For --work: which one it is.");
ABSL_FLAG(uint64_t, workers, 1, "For --work: of how many.");
ABSL_FLAG(absl::Time, start, absl::InfinitePast(), "For --work: when.");
ABSL_FLAG(absl::Duration, work_time, absl::ZeroDuration(),
          "For --work: for how long.");

namespace parasol {
namespace {

// A TCP stream has variables of its own, since its server has no locks.
// Parasol's workers all push and pull the same ones, each from another on.
Entrant EnterWorker(const WorkOrder& order,
                    const ParameterClient::Options& options) {
  Contender contender = {.name = order.kind};
  const bool tcp = order.kind == "tcp";
  contender.sessions =
      tcp ? ConnectTcp(order.port, 2)
          : ConnectParasol(order.port, order.contents, options);
  return Enter(std::move(contender), order.contents.variable_bytes(),
               [&](Session& session, const Share& share) {
                 Share own = share;
                 own.index += order.worker * share.sessions;
                 if (tcp) own.sessions *= order.workers;
                 return MakeVariableLane(session, order.contents,
                                         Direction::kPushPull, own);
               });
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkOrder& order) {
  SubprocessOptions options = {
      .argv = {OwnBinary(), absl::StrCat("--work=", order.kind),
               absl::StrCat("--host=", ServerHost()),
               absl::StrCat("--port=", order.port),
               absl::StrCat("--worker=", order.worker),
               absl::StrCat("--workers=", order.workers),
               absl::StrCat("--start=", absl::AbslUnparseFlag(order.start)),
               absl::StrCat("--work_time=", absl::AbslUnparseFlag(order.time))},
      .standard_output = OutputTo::Pipe()};
  for (std::string& flag : ToFlags(order.contents)) {
    options.argv.push_back(std::move(flag));
  }
  auto process = Subprocess::Start(options);
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
}

double WorkerProcess::Wait() {
  double bytes_per_second = 0;
  CHECK(absl::SimpleAtod(ReadLine(*process_), &bytes_per_second));
  return bytes_per_second;
}

WorkOrder WorkOrderFromFlags(const std::string& kind) {
  return {.kind = kind,
          .port = absl::GetFlag(FLAGS_port),
          .contents = ContentsFromFlags(),
          .worker = absl::GetFlag(FLAGS_worker),
          .workers = absl::GetFlag(FLAGS_workers),
          .start = absl::GetFlag(FLAGS_start),
          .time = absl::GetFlag(FLAGS_work_time)};
}

void Work(const WorkOrder& order, const ParameterClient::Options& options) {
  const Entrant entrant = EnterWorker(order, options);
  Throughput(entrant.lanes, entrant.window, order.start - Clock::Real().Now());
  std::printf("%.9g\n", Throughput(entrant.lanes, entrant.window, order.time));
  std::fflush(stdout);
}

}  // namespace parasol
