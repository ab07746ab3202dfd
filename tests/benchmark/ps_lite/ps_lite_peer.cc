// ps-lite doing the workloads of parameter_plane: one scheduler, one server and
// one worker as processes of this program, over TCP. The server has a gradient
// descent step as its request handle, and answers pulls without copying dense
// variables. Prints "WORKLOAD<tab>AMOUNT PER SECOND" for each workload, in
// bytes, requests or rows.
//
// Built by tests/benchmark/ps_lite/compare; no part of Parasol links it.

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ps/ps.h"

namespace {

// Numbers that parameter_plane has, too.
constexpr size_t kVariableBytes = 32 << 20;  // all variables together
constexpr size_t kBytesInFlight = 8 << 20;
constexpr size_t kLeastInFlight = 2;
constexpr size_t kMostInFlight = 256;
constexpr size_t kRowsPerRequest = 10000;
constexpr size_t kRowRequests = 128;
constexpr float kLearningRate = .01f;
constexpr float kGradient = 1e-3f;

enum Direction { kPush = 1, kPull = 2, kPushPull = 3 };

// A workload; its number is ps-lite's command.
struct Workload {
  const char* name;
  size_t elements;   // of a dense variable; 0: rows
  size_t row_width;  // 0: dense variables
  Direction direction;
  bool counts_requests = false;
};
const Workload kWorkloads[] = {
    {"push 64 KiB", 16 << 10, 0, kPush},
    {"push 1 MiB", 256 << 10, 0, kPush},
    {"push 16 MiB", 4 << 20, 0, kPush},
    {"pull 64 KiB", 16 << 10, 0, kPull},
    {"pull 1 MiB", 256 << 10, 0, kPull},
    {"pull 16 MiB", 4 << 20, 0, kPull},
    {"push+pull 64 KiB", 16 << 10, 0, kPushPull},
    {"push+pull 1 MiB", 256 << 10, 0, kPushPull},
    {"push+pull 16 MiB", 4 << 20, 0, kPushPull},
    {"push 4 KiB", 1024, 0, kPush, true},
    {"pull 4 KiB", 1024, 0, kPull, true},
    {"sparse push", 0, 16, kPush},
    {"sparse pull", 0, 16, kPull},
    {"push x 64", 0, 64, kPush},
    {"pull x 64", 0, 64, kPull},
    {"push+pull x 64", 0, 64, kPushPull},
};

int NumberOf(const std::string& name) {
  int number = 0;
  for (const Workload& workload : kWorkloads) {
    if (name == workload.name) return number;
    ++number;
  }
  std::fprintf(stderr, "ps_lite_peer: no workload \"%s\"\n", name.c_str());
  std::exit(2);
}

// Rows with open addressing, keys and rows in two arrays; the rows ahead are
// prefetched.
class Rows {
 public:
  Rows(size_t width, size_t rows) : width_(width) {
    size_t slots = 1;
    while (slots < 2 * rows) slots *= 2;
    ids_.assign(slots, 0);
    values_.assign(slots * width, 0);
  }

  template <typename Function>
  void ForEach(const ps::SArray<ps::Key>& ids, Function function) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + kAhead < ids.size()) Prefetch(ids[i + kAhead]);
      function(i, RowOf(ids[i]));
    }
  }

 private:
  static constexpr size_t kAhead = 12;

  size_t Home(uint64_t id) const { return id & (ids_.size() - 1); }
  void Prefetch(uint64_t id) const {
    __builtin_prefetch(&ids_[Home(id)]);
    const float* row = &values_[Home(id) * width_];
    for (size_t i = 0; i < width_; i += 16) __builtin_prefetch(row + i, 1);
  }
  float* RowOf(uint64_t id) {
    size_t at = Home(id);
    while (ids_[at] != id && ids_[at] != 0) at = (at + 1) & (ids_.size() - 1);
    ids_[at] = id;
    return &values_[at * width_];
  }

  const size_t width_;
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
};

size_t RowsOfTable() { return std::atoi(std::getenv("PS_LITE_ROWS")); }

void Descend(const float* __restrict gradient, size_t count,
             float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] -= kLearningRate * gradient[i];
}

// Serves one workload.
class Server {
 public:
  explicit Server(const Workload& workload) : workload_(workload) {
    if (workload.row_width > 0) {
      rows_ = std::make_unique<Rows>(workload.row_width, RowsOfTable());
    } else {
      const size_t variables =
          workload.counts_requests
              ? 1000
              : kVariableBytes / (workload.elements * sizeof(float));
      variables_.assign(variables, std::vector<float>(workload.elements));
    }
    server_.set_request_handle([this](const ps::KVMeta& meta,
                                      const ps::KVPairs<float>& request,
                                      ps::KVServer<float>*) {
      rows_ ? HandleRows(meta, request) : HandleVariable(meta, request);
    });
  }

 private:
  void HandleVariable(const ps::KVMeta& meta,
                      const ps::KVPairs<float>& request) {
    std::vector<float>& values = variables_[request.keys[0]];
    if (meta.push) {
      Descend(request.vals.data(), values.size(), values.data());
    }
    ps::KVPairs<float> response;
    if (meta.pull) {
      response.keys = request.keys;
      response.vals = ps::SArray<float>(values.data(), values.size());
    }
    server_.Response(meta, response);
  }

  void HandleRows(const ps::KVMeta& meta, const ps::KVPairs<float>& request) {
    const size_t width = workload_.row_width;
    ps::KVPairs<float> response;
    if (meta.push) {
      rows_->ForEach(request.keys, [&](size_t i, float* row) {
        Descend(&request.vals[i * width], width, row);
      });
    }
    if (meta.pull) {
      response.keys = request.keys;
      response.vals.resize(request.keys.size() * width);
      rows_->ForEach(request.keys, [&](size_t i, const float* row) {
        std::copy_n(row, width, &response.vals[i * width]);
      });
    }
    server_.Response(meta, response);
  }

  const Workload& workload_;
  ps::KVServer<float> server_{0};
  std::vector<std::vector<float>> variables_;
  std::unique_ptr<Rows> rows_;
};

// The server is ready before a worker asks for anything.
void AwaitServer() {
  ps::Postoffice::Get()->Barrier(0, ps::kServerGroup + ps::kWorkerGroup);
}

// Never 0, spread over 63 bits (ps-lite's last key is the end of a range).
uint64_t IdOf(uint64_t n) {
  uint64_t id = (n + 1) * 0x9e3779b97f4a7c15;
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
  id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
  return ((id ^ (id >> 31)) >> 1) | 1;
}

class Worker {
 public:
  explicit Worker(const Workload& workload) : workload_(workload) {
    const bool is_dense = workload.row_width == 0;
    const size_t floats =
        is_dense ? workload.elements : kRowsPerRequest * workload.row_width;
    window_ = std::clamp(kBytesInFlight / (floats * sizeof(float)),
                         kLeastInFlight, kMostInFlight);
    gradient_ = ps::SArray<float>(floats, kGradient);
    for (size_t i = 0; i < window_; ++i) values_.emplace_back(floats, 0.f);
    amount_ = workload.counts_requests ? 1
              : is_dense               ? floats * sizeof(float)
                                       : kRowsPerRequest;
    if (is_dense) {
      const size_t variables = workload.counts_requests
                                   ? 1000
                                   : kVariableBytes / (floats * sizeof(float));
      for (size_t i = 0; i < variables; ++i) keys_.push_back({i});
    } else {
      MakeRows();
    }
  }

  // Returns the amount per second.
  double Run(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                           start)
          .count();
    };
    size_t started = 0;
    do {
      Start(keys_[started % keys_.size()], started % window_);
      ++started;
      if (times_.size() == window_) Finish();
    } while (passed() < seconds);
    while (!times_.empty()) Finish();
    return amount_ * started / passed();
  }

 private:
  void MakeRows() {
    std::mt19937_64 random(0);
    const size_t rows = RowsOfTable();
    for (size_t i = 0; i < kRowRequests; ++i) {
      std::vector<uint64_t> ids;
      while (ids.size() < kRowsPerRequest) {
        while (ids.size() < kRowsPerRequest) {
          ids.push_back(IdOf(random() % rows));
        }
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      }
      keys_.emplace_back(ids);
    }
    // All rows exist before the first measurement.
    for (size_t first = 0; first < rows; first += kRowsPerRequest) {
      std::vector<uint64_t> ids;
      for (size_t n = first; n < first + kRowsPerRequest; ++n) {
        ids.push_back(IdOf(n));
      }
      std::sort(ids.begin(), ids.end());
      worker_.Wait(worker_.ZPush(ps::SArray<ps::Key>(ids), gradient_));
    }
  }

  void Start(const ps::SArray<ps::Key>& keys, size_t slot) {
    switch (workload_.direction) {
      case kPush:
        return times_.push_back(worker_.ZPush(keys, gradient_));
      case kPull:
        return times_.push_back(worker_.ZPull(keys, &values_[slot]));
      case kPushPull:
        return times_.push_back(
            worker_.ZPushPull(keys, gradient_, &values_[slot]));
    }
  }
  void Finish() {
    worker_.Wait(times_.front());
    times_.pop_front();
  }

  const Workload& workload_;
  ps::KVWorker<float> worker_{0, 0};
  size_t window_ = 0;
  double amount_ = 0;
  std::vector<ps::SArray<ps::Key>> keys_;
  ps::SArray<float> gradient_;
  std::vector<ps::SArray<float>> values_;
  std::deque<int> times_;
};

void Work(const Workload& workload, int repetitions, double seconds) {
  AwaitServer();
  Worker worker(workload);
  worker.Run(seconds);  // warms up
  std::vector<double> figures;
  for (int i = 0; i < repetitions; ++i) figures.push_back(worker.Run(seconds));
  std::sort(figures.begin(), figures.end());
  std::printf("%s\t%.9g\n", workload.name, figures[figures.size() / 2]);
  std::fflush(stdout);
}

pid_t Fork(const char* role, const std::function<void()>& run) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("DMLC_ROLE", role, 1);
  ps::Start(0);
  run();
  ps::Finalize(0, true);
  std::_Exit(0);
}

void Run(const std::string& name, int repetitions, double seconds) {
  const Workload& workload = kWorkloads[NumberOf(name)];
  const pid_t scheduler = Fork("scheduler", [] {});
  const pid_t server = Fork("server", [&] {
    static Server* const kServer = new Server(workload);
    (void)kServer;
    AwaitServer();
  });
  const pid_t worker =
      Fork("worker", [&] { Work(workload, repetitions, seconds); });
  for (const pid_t pid : {worker, server, scheduler}) waitpid(pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr,
                 "usage: ps_lite_peer PORT ROWS REPETITIONS SECONDS "
                 "WORKLOAD...\n");
    return 2;
  }
  // Freed memory is kept, as Parasol keeps it.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  setenv("DMLC_NUM_WORKER", "1", 1);
  setenv("DMLC_NUM_SERVER", "1", 1);
  setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
  setenv("DMLC_NODE_HOST", "127.0.0.1", 1);
  setenv("PS_LITE_ROWS", argv[2], 1);
  int port = std::atoi(argv[1]);
  for (int i = 5; i < argc; ++i) {
    setenv("DMLC_PS_ROOT_PORT", std::to_string(port++).c_str(), 1);
    Run(argv[i], std::atoi(argv[3]), std::atof(argv[4]));
  }
  return 0;
}
